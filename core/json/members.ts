/** Counts members in the text of JSON. */

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a];

/** Members of all objects of a JSON text. More than were read: one stands twice, and who reads it decides what it says. */
export function membersIn(bytes: Uint8Array): number {
  let members = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (isText && byte === backslash) at++;
    else if (byte === quote) isText = !isText;
    else if (!isText && byte === colon) members++;
  }
  return members;
}
