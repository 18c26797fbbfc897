/**
 * Turns a conversation into the text that a chat model was trained on.
 *
 * <p>Models bring the rule for that as a Jinja template. The interpreter here covers what such
 * templates use, with the semantics of Python's jinja2, and nothing that reaches outside: no
 * includes, no imports, no host objects. Parsed templates are immutable; each rendering is confined
 * to the calling thread.
 */
@NullMarked
package dev.dormouse.model.chat;

import org.jspecify.annotations.NullMarked;
