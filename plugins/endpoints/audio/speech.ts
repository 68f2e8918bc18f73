/** `POST /v1/audio/speech`: audio as it comes, or server-sent events; charged by characters or by tokens, as the price counts. */
import { isObject, type JsonObject, objectOf } from '../../../core/json/json.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { AudioFrames } from '../../common/audio/frames.ts';
import type { UsageReport } from '../../common/domain/calls.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import { envelopeAnswer } from '../../common/kit/error-envelope.ts';
import { refuseIds } from '../../common/wire/named.ts';
import type { VendorId } from '../../common/wire/protocols.ts';
import { isAbsent, modelOf, readJson, relayedBody, requiredText, wordOf } from '../checks.ts';
import type { AnswerContext, EndpointDescription, Limits, StreamMeter } from '../description.ts';
import { chargedTokens, heldTokens } from '../estimate.ts';
import { EventMeter } from '../events.ts';
import { completed, pricedIn } from '../metering.ts';
import { bearer, wire } from '../wires.ts';
import { heldSpokenTokens, spokenSeconds, spokenTokens } from './estimates.ts';

const formats = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const;
type Format = (typeof formats)[number];

export const speech: EndpointDescription = {
  path: '/v1/audio/speech',
  operation: 'speech',
  kind: 'speech',
  summary: 'Speaks a text.',
  request: 'json',
  model: 'body',
  answers: ['audio/mpeg', 'audio/wav', 'audio/opus', 'audio/aac', 'audio/flac', 'text/event-stream'],
  open({ request }, limits) {
    const body = readJson(request.body);
    const { json } = body;
    const input = checkedInput(json, limits);
    const isEvents = wordOf(json, 'stream_format', ['sse', 'audio']) === 'sse';
    const format = wordOf(json, 'response_format', formats) ?? 'mp3';
    checkVoice(json['voice']);
    checkSpeed(json['speed']);
    const characters = [...input].length;
    return {
      call: {
        protocol: wire.openaiSpeech,
        model: modelOf(json),
        stream: true,
        billable: true,
        inputTokens: heldTokens(Buffer.byteLength(input)),
        maxOutputTokens: heldSpokenTokens(characters),
        choices: 1,
        kind: 'speech',
        counted: { character: characters },
        convertsTo: [],
      },
      prepare: (target) => {
        refuseIds(ownVoices(json['voice']), target);
        return {
          wire: bearer,
          path: '/audio/speech',
          ...relayedBody(body, target),
          accept: isEvents ? 'text/event-stream' : '*/*',
          converted: false,
          answer: {
            form: 'stream',
            open: (type, context) =>
              openMeter(isEvents && type.startsWith('text/event-stream'), format, input, context),
          },
        };
      },
    };
  },
  renderError: envelopeAnswer,
};

function checkedInput(json: JsonObject, { characters: most }: Limits): string {
  const input = requiredText(json, 'input');
  if (input.length > most) throw invalid(`The field "input" has more than ${most} characters.`, 'input');
  return input;
}

function checkVoice(voice: unknown): void {
  if (typeof voice === 'string' || isObject(voice)) return;
  throw invalid(isAbsent(voice) ? 'The field "voice" is missing.' : 'The field "voice" must be a string.', 'voice');
}

/** A custom voice belongs to one customer of the vendor, and no answer of the gateway issues one. */
function ownVoices(voice: unknown): readonly Pick<VendorId, 'id' | 'kind' | 'field'>[] {
  if (!isObject(voice)) return [];
  return [{ id: typeof voice['id'] === 'string' ? voice['id'] : '', kind: 'Voice', field: 'voice.id' }];
}

function checkSpeed(speed: unknown): void {
  if (isAbsent(speed) || (typeof speed === 'number' && speed >= 0.25 && speed <= 4)) return;
  throw invalid('The field "speed" must be a number from 0.25 to 4.', 'speed');
}

function openMeter(isEvents: boolean, format: Format, input: string, context: AnswerContext): StreamMeter {
  const spoken = new SpokenReport(format, input, context);
  if (!isEvents) return new AudioMeter(spoken);
  return new EventMeter(spoken, context, (event) => {
    const delta = event['audio'];
    if (event['type'] === 'speech.audio.delta' && typeof delta === 'string') spoken.hear(Buffer.from(delta, 'base64'));
    if (event['type'] !== 'speech.audio.done') return false;
    spoken.reported = usageIn(objectOf(event['usage']));
    spoken.terminal = true;
    return true;
  });
}

function usageIn(usage: JsonObject | undefined): Usage | undefined {
  const [input, output] = [readCount(usage?.['input_tokens']), readCount(usage?.['output_tokens'])];
  return input === undefined || output === undefined ? undefined : { input, output_audio: output };
}

/** PCM of these endpoints: 24 kHz, 16 bits, one channel. */
const pcmBytesPerSecond = 48_000;
const wavHeaderBytes = 44;

/** Characters are counted exactly; tokens are the vendor's, or estimated by the audio that came. */
class SpokenReport implements UsageReport {
  reported: Usage | undefined;
  terminal = false;
  readonly upstreamId = undefined;
  readonly finish = undefined;
  readonly #format: Format;
  readonly #input: string;
  readonly #context: AnswerContext;
  readonly #frames = new AudioFrames();
  #bytes = 0;
  #head: Buffer = Buffer.alloc(0);

  constructor(format: Format, input: string, context: AnswerContext) {
    this.#format = format;
    this.#input = input;
    this.#context = context;
  }

  /** Audio that was sent to the client. */
  hear(audio: Uint8Array): void {
    this.#bytes += audio.length;
    if (this.#format === 'mp3' || this.#format === 'aac') this.#frames.feed(audio);
    if (this.#format === 'wav' && this.#head.length < wavHeaderBytes)
      this.#head = Buffer.concat([this.#head, audio.subarray(0, wavHeaderBytes)]);
  }

  get usage(): Usage {
    return this.#measured().usage;
  }

  get estimated(): boolean {
    return this.#measured().estimated;
  }

  #measured() {
    const { call, exchange } = this.#context;
    const isPriced = pricedIn(exchange);
    const exact = isPriced('character') ? call.counted : undefined;
    const known = this.reported === undefined && exact === undefined ? undefined : { ...this.reported, ...exact };
    const input = chargedTokens(Buffer.byteLength(this.#input));
    const seen = { ...call.counted, input, output_audio: spokenTokens(this.#seconds()) };
    return completed(known, seen, isPriced);
  }

  #seconds(): number {
    if (this.#bytes === 0) return 0;
    if (this.#format === 'mp3' || this.#format === 'aac') return this.#frames.seconds;
    if (this.#format === 'pcm') return this.#bytes / pcmBytesPerSecond;
    if (this.#format === 'wav' && this.#head.length >= wavHeaderBytes)
      return (this.#bytes - wavHeaderBytes) / (this.#head.readUInt32LE(28) || pcmBytesPerSecond);
    return spokenSeconds(this.#input.length);
  }
}

class AudioMeter implements StreamMeter {
  readonly report: SpokenReport;

  constructor(report: SpokenReport) {
    this.report = report;
  }

  feed(chunk: Uint8Array): Uint8Array {
    this.report.hear(chunk);
    return chunk;
  }

  end(): undefined {
    this.report.terminal = true;
    return undefined;
  }
}
