/** Encodes the frames of a messages stream. Pure. */

/** One event with its name, which clients require. */
function frame(type: string, members: string): string {
  return `event: ${type}\ndata: {"type":"${type}"${members}}\n\n`;
}

export const pingFrame = frame('ping', '');
export const messageStopFrame = frame('message_stop', '');

export function messageStartFrame(message: object): string {
  return frame('message_start', `,"message":${JSON.stringify(message)}`);
}

export function messageDeltaFrame(delta: object, usage: object): string {
  return frame('message_delta', `,"delta":${JSON.stringify(delta)},"usage":${JSON.stringify(usage)}`);
}

export function blockStartFrame(index: number, block: object): string {
  return frame('content_block_start', `,"index":${index},"content_block":${JSON.stringify(block)}`);
}

export function blockStopFrame(index: number): string {
  return frame('content_block_stop', `,"index":${index}`);
}

/** Kinds of deltas, each with the member that it appends to. */
const growing = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  input_json_delta: 'partial_json',
  citations_delta: 'citation',
} as const;
export type DeltaType = keyof typeof growing;

/** A delta's frame up to its value: built once for each block, as only the value changes. */
export function deltaHead(index: number, type: DeltaType): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${growing[type]}":`;
}
/** The frame after its value. */
export const deltaTail = '}}\n\n';

export function deltaFrame(index: number, type: DeltaType, value: unknown): string {
  return deltaHead(index, type) + JSON.stringify(value) + deltaTail;
}

/** A block that is complete at its start. */
export function wholeBlockFrames(index: number, block: object): string {
  return blockStartFrame(index, block) + blockStopFrame(index);
}
