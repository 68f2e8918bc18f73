/** The lines of a file, byte by byte: a line ends with a line feed alone, and what is no UTF-8 is an error. */
import { createReadStream } from 'node:fs';
import { GatewayError } from '../../../core/contract/errors.ts';

/** The sums of a large account stand in one line. */
const longestLine = 256 * 2 ** 20;

export async function* linesIn(path: string): AsyncGenerator<string> {
  let waiting: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      yield textOf([...waiting, chunk.subarray(from, at)]);
      [waiting, bytes, from] = [[], 0, at + 1];
    }
    waiting.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > longestLine)
      throw new GatewayError('invalid_request', 'The file is no statement: a line of it has no end.');
  }
  // Behind the last line end there is nothing.
  if (bytes > 0) yield textOf(waiting);
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What is no text is no JSON either. */
function textOf(parts: readonly Buffer[]): string {
  try {
    return decoder.decode(Buffer.concat(parts));
  } catch {
    return '\ufffd';
  }
}
