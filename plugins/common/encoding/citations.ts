/** Conversion of text positions between UTF-8 bytes and UTF-16 units. Pure. */

/** The UTF-16 offset of a UTF-8 byte offset; inside a character: the offset of its beginning. */
export function utf16Offset(text: string, byteOffset: number): number {
  let bytes = 0;
  let offset = 0;
  while (offset < text.length) {
    const code = text.codePointAt(offset)!;
    bytes += bytesOf(code);
    if (bytes > byteOffset) return offset;
    offset += code > 0xffff ? 2 : 1;
  }
  return offset;
}

/** The number of UTF-8 bytes before this UTF-16 offset; inside a surrogate pair: before the pair. */
export function byteOffset(text: string, utf16: number): number {
  let bytes = 0;
  for (let offset = 0; offset < text.length; ) {
    const code = text.codePointAt(offset)!;
    offset += code > 0xffff ? 2 : 1;
    if (offset > utf16) break;
    bytes += bytesOf(code);
  }
  return bytes;
}

function bytesOf(code: number): number {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}
