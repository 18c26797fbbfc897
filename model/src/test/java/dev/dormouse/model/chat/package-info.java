/** Tests of chat templates against Python's jinja2. */
@NullMarked
package dev.dormouse.model.chat;

import org.jspecify.annotations.NullMarked;
