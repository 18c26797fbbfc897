@NullMarked
package dev.dormouse.model.folder;

import org.jspecify.annotations.NullMarked;
