// Rounding as NumPy rounds: the pictures that are drawn here are those that Python draws, pixel for pixel.

const MAGIC = 1.5 * 2 ** 52;

// To the nearest whole number, and from the middle to the even one.
export const rint = (value) => value + MAGIC - MAGIC;

export const clip = (value, least, most) => Math.min(Math.max(value, least), most);
