/** HTTP connections whose server notices at any moment when the client leaves. */
@NullMarked
package dev.dormouse.http;

import org.jspecify.annotations.NullMarked;
