/** The rules of a messages stream that applications rely on when they read its events by themselves. */
import type Anthropic from '@anthropic-ai/sdk';
import { type Answered, parsedArguments, rawFrames, rule } from './understood.ts';

type Event = Anthropic.RawMessageStreamEvent;
type Delta = Anthropic.RawContentBlockDeltaEvent['delta'];

/** Which deltas a block takes. */
const deltasOf: Readonly<Record<string, readonly Delta['type'][]>> = {
  text: ['text_delta', 'citations_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  tool_use: ['input_json_delta'],
  server_tool_use: ['input_json_delta'],
  mcp_tool_use: ['input_json_delta'],
};

export class MessagesGrammar {
  #message: Anthropic.Message | undefined;
  #open: Anthropic.ContentBlock | undefined;
  #input = '';
  #isSigned = false;
  #isEnded = false;
  #isStopped = false;

  constructor(answer: Answered) {
    for (const { event, data } of rawFrames(answer)) {
      const { type } = JSON.parse(data) as { type: string };
      rule(event === type, `the frame of ${type} is named ${event}`);
    }
  }

  event(event: Event): void {
    rule(!this.#isStopped, `${event.type} comes after message_stop`);
    if (event.type === 'message_start') {
      this.#start(event.message);
      return;
    }
    rule(this.#message !== undefined, `${event.type} comes before message_start`);
    if (event.type === 'message_delta') this.#delta(event);
    else if (event.type === 'message_stop') {
      rule(this.#isEnded, 'message_stop comes without message_delta');
      this.#isStopped = true;
    } else if (event.type === 'content_block_start') this.#blockStart(event, this.#message);
    else if (event.type === 'content_block_delta') this.#blockDelta(event, this.#message);
    else if (event.type === 'content_block_stop') this.#blockStop(event.index, this.#message);
  }

  finish(): Anthropic.Message {
    rule(this.#message !== undefined && this.#isStopped, 'the stream has no message_stop');
    return this.#message;
  }

  #start(message: Anthropic.Message): void {
    rule(this.#message === undefined, 'message_start comes twice');
    rule(Number.isInteger(message.usage?.input_tokens), 'message_start tells no input tokens');
    rule(message.content.length === 0 && message.stop_reason === null, 'message_start tells more than the beginning');
    this.#message = { ...message, content: [], usage: { ...message.usage } };
  }

  #blockStart({ index, content_block: block }: Anthropic.RawContentBlockStartEvent, message: Anthropic.Message): void {
    rule(this.#open === undefined, `block ${index} starts while another one is open`);
    rule(!this.#isEnded, `block ${index} starts after message_delta`);
    rule(index === message.content.length, `block ${index} starts after ${message.content.length} blocks`);
    this.#open = { ...block };
    this.#input = '';
    this.#isSigned = false;
    message.content.push(this.#open);
  }

  #blockDelta({ index, delta }: Anthropic.RawContentBlockDeltaEvent, message: Anthropic.Message): void {
    const block = this.#open;
    rule(
      block !== undefined && index === message.content.length - 1,
      `a delta is about block ${index}, which is not open`,
    );
    rule(deltasOf[block.type]?.includes(delta.type) === true, `a block of ${block.type} gets a ${delta.type}`);
    rule(!this.#isSigned, `a ${delta.type} comes after the signature`);
    if (delta.type === 'text_delta' && block.type === 'text') block.text += delta.text;
    else if (delta.type === 'citations_delta' && block.type === 'text')
      block.citations = [...(block.citations ?? []), delta.citation];
    else if (delta.type === 'thinking_delta' && block.type === 'thinking') block.thinking += delta.thinking;
    else if (delta.type === 'signature_delta' && block.type === 'thinking') {
      block.signature = delta.signature;
      this.#isSigned = true;
    } else if (delta.type === 'input_json_delta') this.#input += delta.partial_json;
  }

  #blockStop(index: number, message: Anthropic.Message): void {
    const block = this.#open;
    rule(block !== undefined && index === message.content.length - 1, `block ${index} stops, but is not open`);
    if (block.type === 'tool_use' && this.#input !== '') block.input = parsedArguments(this.#input);
    this.#open = undefined;
  }

  #delta({ delta, usage }: Anthropic.RawMessageDeltaEvent): void {
    rule(this.#open === undefined, 'message_delta comes while a block is open');
    rule(!this.#isEnded, 'message_delta comes twice');
    rule(typeof delta.stop_reason === 'string', 'message_delta tells no reason');
    rule(Number.isInteger(usage?.output_tokens), 'message_delta tells no output tokens');
    this.#isEnded = true;
    const message = this.#message!;
    message.stop_reason = delta.stop_reason;
    message.stop_sequence = delta.stop_sequence;
    for (const [name, count] of Object.entries(usage))
      if (count != null) Object.assign(message.usage, { [name]: count });
  }
}
