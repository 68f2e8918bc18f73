/** Gemini Live: JSON in binary frames, members in camelCase or snake_case, one kind of message in each, a turn that ends with `turnComplete` and its usage. */
import { setTimeout as pause } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import type { Usage } from '../../common/domain/usage.ts';
import { Fault } from '../fault.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.ts';
import { camel } from '../protocols/gemini-request.ts';
import type { Vendor } from '../vendor-state.ts';
import { type Answer, type Piece, producedBy, Talk } from './talk.ts';

/** Audio input is PCM of 16 kHz, 16 bits. */
const heardBytesPerSecond = 32_000;

export function serveGeminiLive(vendor: Vendor, socket: WebSocket): void {
  let session: LiveSession | undefined;
  socket.on('error', () => {});
  socket.on('message', (data: Buffer) => {
    try {
      const message: unknown = JSON.parse(data.toString());
      if (!isObject(message)) throw new Fault(400, 'A message must be an object.');
      if (session !== undefined) session.receive(message);
      else session = new LiveSession(vendor, socket, camel(message['setup']));
    } catch (error) {
      socket.close(1007, error instanceof Fault ? error.message : 'Invalid JSON payload received.');
    }
  });
}

class LiveSession {
  readonly #vendor: Vendor;
  readonly #socket: WebSocket;
  readonly #talk: Talk;
  readonly #model: string;
  readonly #settings: string;
  readonly #speaks: boolean;
  #heardBytes = 0;
  #isAnswering = false;

  constructor(vendor: Vendor, socket: WebSocket, setup: JsonObject) {
    const model = textOf(setup['model']);
    if (model === undefined) throw new Fault(400, 'setup must be the first message and the first only, with a model.');
    this.#vendor = vendor;
    this.#socket = socket;
    this.#model = model.replace(/^models\//, '');
    this.#talk = new Talk(this.#model);
    this.#settings = JSON.stringify([setup['systemInstruction'], setup['tools']]);
    this.#speaks = listOf(camel(setup['generationConfig'])['responseModalities']).includes('AUDIO');
    this.#send({ setupComplete: {} });
  }

  receive(message: JsonObject): void {
    const { clientContent, realtimeInput, toolResponse } = camel(message);
    if (isObject(clientContent)) this.#hearTurns(camel(clientContent));
    else if (isObject(realtimeInput)) this.#hearInput(camel(realtimeInput));
    else if (isObject(toolResponse)) {
      this.#talk.hearText(JSON.stringify(camel(toolResponse)['functionResponses']));
      this.#answer();
    } else throw new Fault(400, 'Unknown message.');
  }

  #hearTurns(content: JsonObject): void {
    for (const turn of listOf(content['turns']))
      for (const part of listOf(objectOf(turn)['parts'])) {
        const { text, inlineData } = camel(part);
        if (typeof text === 'string') this.#talk.hearText(text);
        else if (isObject(inlineData)) this.#talk.hearImage();
      }
    if (content['turnComplete'] === true) this.#answer();
  }

  #hearInput(input: JsonObject): void {
    const text = textOf(input['text']);
    const audio = textOf(objectOf(input['audio'])['data']);
    if (audio !== undefined) this.#heardBytes += Buffer.from(audio, 'base64').length;
    if (isObject(input['video'])) this.#talk.hearImage();
    if (text !== undefined) this.#talk.hearText(text);
    if (text === undefined && input['audioStreamEnd'] !== true && !isObject(input['activityEnd'])) return;
    if (this.#heardBytes > 0) this.#talk.hearAudio(this.#heardBytes, heardBytesPerSecond);
    this.#heardBytes = 0;
    this.#answer();
  }

  #answer(): void {
    if (this.#isAnswering) return;
    this.#isAnswering = true;
    this.#vendor.bill.opened();
    const answer = this.#talk.answer(this.#settings, this.#speaks);
    void this.#speak(answer).finally(() => {
      this.#isAnswering = false;
      this.#vendor.bill.closed();
    });
  }

  async #speak({ directives, pieces, prompt }: Answer): Promise<void> {
    const socket = this.#socket;
    const pauseMs = directives.chunk_delay ?? this.#vendor.chunkMs;
    const given: Piece[] = [];
    for (const piece of pieces.slice(0, directives.cut_after)) {
      if (pauseMs > 0) await pause(pauseMs);
      if (socket.readyState !== socket.OPEN) break;
      given.push(piece);
      this.#send({ serverContent: { modelTurn: { parts: [partOf(piece)] } } });
    }
    const usage = { ...prompt, ...producedOf(given) };
    this.#talk.said(usage);
    const now = this.#vendor.now();
    const isWhole = directives.cut_after === undefined && socket.readyState === socket.OPEN;
    const common = { at: now, endedAt: now, protocol: 'live', model: this.#model, requestId: undefined } as const;
    this.#vendor.bill.add({ ...common, answerId: this.#vendor.nextId(), usage, outcome: isWhole ? 'complete' : 'cut' });
    if (directives.cut_after !== undefined) socket.terminate();
    if (!isWhole) return;
    this.#send({ serverContent: { generationComplete: true } });
    const reported = directives.no_usage === true ? {} : { usageMetadata: reportOf(usage) };
    this.#send({ serverContent: { turnComplete: true }, ...reported });
  }

  #send(message: object): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(Buffer.from(JSON.stringify(message)));
  }
}

/** An audio answer has no text parts. */
function producedOf(given: readonly Piece[]): Usage {
  const { output = 0, output_audio: audio } = producedBy(given);
  return audio === undefined ? { output } : { output: 0, output_audio: audio };
}

function partOf({ text, audio }: Piece): object {
  return audio === undefined
    ? { text }
    : { inlineData: { mimeType: 'audio/pcm;rate=24000', data: audio.toString('base64') } };
}

function reportOf(usage: Usage): object {
  const { input = 0, input_audio: audio = 0, input_image: image = 0, output = 0, output_audio: spoken = 0 } = usage;
  const { cache_read: cachedText = 0, cache_read_audio: cachedAudio = 0, cache_read_image: cachedImage = 0 } = usage;
  const details = (counts: readonly (readonly [modality: string, tokenCount: number])[]) =>
    counts.filter(([, tokenCount]) => tokenCount > 0).map(([modality, tokenCount]) => ({ modality, tokenCount }));
  const cached = cachedText + cachedAudio + cachedImage;
  const prompt = input + audio + image + cached;
  return {
    promptTokenCount: prompt,
    responseTokenCount: output + spoken,
    totalTokenCount: prompt + output + spoken,
    promptTokensDetails: details([
      ['TEXT', input + cachedText],
      ['AUDIO', audio + cachedAudio],
      ['IMAGE', image + cachedImage],
    ]),
    responseTokensDetails: details([
      ['TEXT', output],
      ['AUDIO', spoken],
    ]),
    ...(cached === 0
      ? {}
      : {
          cachedContentTokenCount: cached,
          cacheTokensDetails: details([
            ['TEXT', cachedText],
            ['AUDIO', cachedAudio],
            ['IMAGE', cachedImage],
          ]),
        }),
  };
}
