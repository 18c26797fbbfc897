/** Checked reading of the JSON files that come with a model. */
@NullMarked
package dev.dormouse.model.json;

import org.jspecify.annotations.NullMarked;
