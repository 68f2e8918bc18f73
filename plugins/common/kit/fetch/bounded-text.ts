/** Reads the text of an HTTP answer within a bound. */

/** `tooLong`: the error that is thrown for a body of more than `mostBytes`. */
export async function boundedText(
  { body }: { readonly body: AsyncIterable<Uint8Array> | null },
  mostBytes: number,
  tooLong: () => Error,
): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > mostBytes) throw tooLong();
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
