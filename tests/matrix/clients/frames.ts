/** Cuts a received stream into SSE frames by the letter of the specification, apart from the gateway's reader. */
import assert from 'node:assert/strict';

export interface Frame {
  readonly event: string | undefined;
  readonly data: string;
}

/** Every frame that has data; comments are skipped. Throws unless the stream ends with a blank line. */
export function dataFrames(text: string): Frame[] {
  const lines = text.split(/\r\n|\n|\r/);
  assert.ok(/(?:\r\n|\n|\r){2}$/.test(text), 'the stream ends with a blank line');
  const frames: Frame[] = [];
  let event: string | undefined;
  let data: string[] = [];
  for (const line of lines) {
    if (line === '') {
      if (data.length > 0) frames.push({ event, data: data.join('\n') });
      event = undefined;
      data = [];
    } else if (line.startsWith('event:')) event = line.slice(6).trimStart();
    else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    else assert.ok(line.startsWith(':'), `a line of no known field: ${line.slice(0, 80)}`);
  }
  assert.ok(frames.length > 0, 'at least one frame');
  return frames;
}
