/** OpenAI's realtime protocol: events in JSON, audio as PCM in base64. With the beta's header, the beta's names. */
import { setTimeout as pause } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import type { Usage } from '../../common/domain/usage.ts';
import { Fault } from '../fault.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../json.ts';
import type { Directives } from '../script/directives.ts';
import type { Vendor } from '../vendor-state.ts';
import { type Answer, type Piece, producedBy, secondsOf, Talk } from './talk.ts';

/** The silence that ends a turn, and the loudness above which sound is speech. */
const silenceBytes = 24_000;
const loudness = 500;
const speechTokensPerSecond = 10;

export interface RealtimeOptions {
  readonly vendor: Vendor;
  readonly socket: WebSocket;
  readonly model: string;
  readonly isBeta: boolean;
  readonly requestId: string | undefined;
}

interface Running {
  isCancelled: boolean;
}

export function serveRealtime(options: RealtimeOptions): void {
  const session = new RealtimeSession(options);
  session.open();
}

class RealtimeSession {
  readonly #options: RealtimeOptions;
  readonly #talk: Talk;
  readonly #id: string;
  #settings: JsonObject;
  #events = 0;
  #items = 0;
  /** Audio that was appended and is not committed yet. */
  #buffered: Buffer[] = [];
  #quietBytes = 0;
  #isSpeaking = false;
  #running: Running | undefined;

  constructor(options: RealtimeOptions) {
    this.#options = options;
    this.#talk = new Talk(options.model);
    this.#id = options.vendor.nextId();
    this.#settings = {
      type: 'realtime',
      object: 'realtime.session',
      id: `sess_${this.#id}`,
      model: options.model,
      output_modalities: ['audio'],
      instructions: '',
      tools: [],
      audio: {
        input: {
          format: { type: 'audio/pcm', rate: 24_000 },
          transcription: null,
          turn_detection: { type: 'server_vad' },
        },
        output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'marin' },
      },
    };
  }

  open(): void {
    const { socket } = this.#options;
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      try {
        if (isBinary) throw new Fault(400, 'Events must be text.');
        const event: unknown = JSON.parse(data.toString());
        if (!isObject(event)) throw new Fault(400, 'An event must be an object.');
        this.#receive(event);
      } catch (error) {
        this.#refuse(error);
      }
    });
    socket.on('error', () => {});
    socket.once('close', () => this.#cancel());
    this.#send('session.created', { session: this.#settings });
  }

  #send(type: string, members: object): void {
    const named = this.#options.isBeta ? (betaNames.get(type) ?? type) : type;
    this.#options.socket.send(
      JSON.stringify({ type: named, event_id: `event_${this.#id}_${++this.#events}`, ...members }),
    );
  }

  #refuse(error: unknown): void {
    const message = error instanceof Fault ? error.message : 'The event is not valid JSON.';
    const shown = { type: 'invalid_request_error', code: 'invalid_value', message, param: null, event_id: null };
    this.#send('error', { error: shown });
  }

  #receive(event: JsonObject): void {
    const handlers: Record<string, () => void> = {
      'session.update': () => this.#update(objectOf(event['session'])),
      'conversation.item.create': () => this.#addItem(objectOf(event['item'])),
      'input_audio_buffer.append': () => this.#append(Buffer.from(textOf(event['audio']) ?? '', 'base64')),
      'input_audio_buffer.commit': () => this.#commit(),
      'input_audio_buffer.clear': () => {
        this.#buffered = [];
        this.#send('input_audio_buffer.cleared', {});
      },
      'response.create': () => this.#respond(objectOf(event['response'])),
      'response.cancel': () => this.#cancel(),
    };
    const type = String(event['type']);
    const handler = Object.hasOwn(handlers, type) ? handlers[type] : undefined;
    if (handler === undefined) throw new Fault(400, `Invalid value: '${type}'.`);
    handler();
  }

  #update(changes: JsonObject): void {
    const named = changes['model'];
    if (named !== undefined && named !== this.#options.model) throw new Fault(400, 'Cannot update the model.');
    const audio = objectOf(changes['audio']);
    const before = objectOf(this.#settings['audio']);
    const merged = {
      input: { ...objectOf(before['input']), ...objectOf(audio['input']) },
      output: { ...objectOf(before['output']), ...objectOf(audio['output']) },
    };
    this.#settings = { ...this.#settings, ...changes, audio: merged };
    this.#send('session.updated', { session: this.#settings });
  }

  #addItem(given: JsonObject): void {
    const item = { id: `item_${this.#id}_${++this.#items}`, ...given };
    for (const part of listOf(given['content'])) {
      const content = objectOf(part);
      const text = textOf(content['text']);
      if (text !== undefined) this.#talk.hearText(text);
      else if (content['type'] === 'input_image') this.#talk.hearImage();
      else if (textOf(content['audio']) !== undefined)
        this.#talk.hearAudio(Buffer.from(textOf(content['audio'])!, 'base64').length);
    }
    const output = textOf(given['output']);
    if (output !== undefined) this.#talk.hearText(output);
    this.#send('conversation.item.added', { previous_item_id: null, item });
    if (!this.#options.isBeta) this.#send('conversation.item.done', { previous_item_id: null, item });
  }

  get #input(): JsonObject {
    return objectOf(objectOf(this.#settings['audio'])['input']);
  }

  #append(audio: Buffer): void {
    if (audio.length === 0) throw new Fault(400, "Missing required parameter: 'audio'.");
    this.#buffered.push(audio);
    if (this.#input['turn_detection'] === null) return;
    if (isLoud(audio)) {
      if (!this.#isSpeaking)
        this.#send('input_audio_buffer.speech_started', { audio_start_ms: 0, item_id: `item_${this.#id}` });
      this.#isSpeaking = true;
      this.#quietBytes = 0;
      return;
    }
    this.#quietBytes += audio.length;
    if (!this.#isSpeaking || this.#quietBytes < silenceBytes) return;
    this.#isSpeaking = false;
    this.#send('input_audio_buffer.speech_stopped', { audio_end_ms: 0, item_id: `item_${this.#id}` });
    this.#commit();
    this.#respond({});
  }

  #commit(): void {
    const bytes = this.#buffered.reduce((sum, { length }) => sum + length, 0);
    if (bytes === 0) throw new Fault(400, 'Error committing input audio buffer: buffer too small.');
    this.#buffered = [];
    this.#quietBytes = 0;
    const seconds = this.#talk.hearAudio(bytes);
    const id = `item_${this.#id}_${++this.#items}`;
    this.#send('input_audio_buffer.committed', { previous_item_id: null, item_id: id });
    const item = { id, type: 'message', role: 'user', content: [{ type: 'input_audio', transcript: null }] };
    this.#send('conversation.item.added', { previous_item_id: null, item });
    this.#transcribe(id, seconds);
  }

  #transcribe(itemId: string, seconds: number): void {
    const model = textOf(objectOf(this.#input['transcription'])['model']);
    if (model === undefined) return;
    const transcript = `The sandbox has heard ${Math.round(seconds * 10) / 10} seconds.`;
    const audio = Math.ceil(seconds * speechTokensPerSecond);
    const output = Math.ceil(transcript.length / 4);
    const isTimed = model.startsWith('whisper');
    const counts = {
      input_tokens: audio,
      input_token_details: { text_tokens: 0, audio_tokens: audio },
      output_tokens: output,
    };
    const usage = isTimed ? { type: 'duration', seconds } : { type: 'tokens', total_tokens: audio + output, ...counts };
    this.#bill(itemId, model, isTimed ? { audio: Math.ceil(seconds) } : { input: 0, input_audio: audio, output }, true);
    this.#send('conversation.item.input_audio_transcription.completed', {
      item_id: itemId,
      content_index: 0,
      transcript,
      usage,
    });
  }

  #cancel(): void {
    if (this.#running !== undefined) this.#running.isCancelled = true;
  }

  #respond(requested: JsonObject): void {
    if (this.#running !== undefined) throw new Fault(400, 'Conversation already has an active response in progress.');
    const settings = { ...this.#settings, ...requested };
    const modalities = listOf(
      requested['output_modalities'] ??
        requested['modalities'] ??
        this.#settings['modalities'] ??
        this.#settings['output_modalities'],
    );
    const answer = this.#talk.answer(
      JSON.stringify([settings['instructions'], settings['tools']]),
      modalities.includes('audio'),
    );
    const running: Running = { isCancelled: false };
    this.#running = running;
    this.#options.vendor.bill.opened();
    void this.#speak(answer, running).finally(() => {
      this.#running = undefined;
      this.#options.vendor.bill.closed();
    });
  }

  async #speak({ directives, pieces, prompt }: Answer, running: Running): Promise<void> {
    const { vendor, socket } = this.#options;
    const id = vendor.nextId();
    const place = { response_id: `resp_${id}`, item_id: `item_${id}`, output_index: 0, content_index: 0 };
    const response = {
      object: 'realtime.response',
      id: place.response_id,
      status: 'in_progress',
      output: [],
      usage: null,
    };
    this.#send('response.created', { response });
    if (directives.delay !== undefined) await pause(directives.delay);
    const given = directives.status === undefined ? await this.#give(pieces, directives, place, running) : [];
    const usage = directives.status === undefined ? { ...prompt, ...producedBy(given) } : {};
    this.#talk.said(usage);
    const isCut = directives.cut_after !== undefined;
    if (Object.keys(usage).length > 0) this.#bill(id, this.#options.model, usage, !isCut);
    if (isCut) socket.terminate();
    if (isCut || directives.stall !== undefined || socket.readyState !== socket.OPEN) return;
    this.#done(place, given, {
      response,
      usage,
      running,
      failed: directives.status,
      hidden: directives.no_usage === true,
    });
  }

  /** Sends the pieces until the answer is cancelled, cut or whole; returns those that were sent. */
  async #give(pieces: readonly Piece[], directives: Directives, place: object, running: Running): Promise<Piece[]> {
    const { vendor, socket } = this.#options;
    const given: Piece[] = [];
    const pauseMs = directives.chunk_delay ?? vendor.chunkMs;
    for (const piece of pieces.slice(0, directives.cut_after)) {
      if (pauseMs > 0) await pause(pauseMs);
      if (running.isCancelled || socket.readyState !== socket.OPEN) break;
      given.push(piece);
      this.#deltas(place, piece);
      // Waits for a slow client.
      while (socket.bufferedAmount > 1_000_000 && socket.readyState === socket.OPEN) await pause(5);
    }
    return given;
  }

  #deltas(place: object, { text, audio }: Piece): void {
    if (audio === undefined) {
      this.#send('response.output_text.delta', { ...place, delta: text });
      return;
    }
    this.#send('response.output_audio_transcript.delta', { ...place, delta: text });
    this.#send('response.output_audio.delta', { ...place, delta: audio.toString('base64') });
  }

  #done(
    place: { readonly item_id: string },
    given: readonly Piece[],
    end: { response: object; usage: Usage; running: Running; failed: number | undefined; hidden: boolean },
  ): void {
    const text = given.map((piece) => piece.text).join('');
    const speaks = given.some(({ audio }) => audio !== undefined);
    if (speaks) this.#send('response.output_audio.done', place);
    else this.#send('response.output_text.done', { ...place, text });
    const content = speaks ? [{ type: 'output_audio', transcript: text }] : [{ type: 'output_text', text }];
    const item = { id: place.item_id, type: 'message', role: 'assistant', status: 'completed', content };
    this.#send('response.output_item.done', { ...place, item });
    const status = end.failed !== undefined ? 'failed' : end.running.isCancelled ? 'cancelled' : 'completed';
    const usage = end.hidden || end.failed !== undefined ? null : reported(end.usage);
    this.#send('response.done', { response: { ...end.response, status, output: [item], usage } });
  }

  #bill(answerId: string, model: string, usage: Usage, isWhole: boolean): void {
    const { vendor, requestId } = this.#options;
    const now = vendor.now();
    const outcome = isWhole ? 'complete' : 'cut';
    vendor.bill.add({ at: now, endedAt: now, protocol: 'live', model, requestId, answerId, usage, outcome });
  }
}

/** Names of the generally available interface, and of the beta. */
const betaNames = new Map([
  ['response.output_text.delta', 'response.text.delta'],
  ['response.output_text.done', 'response.text.done'],
  ['response.output_audio.delta', 'response.audio.delta'],
  ['response.output_audio.done', 'response.audio.done'],
  ['response.output_audio_transcript.delta', 'response.audio_transcript.delta'],
  ['conversation.item.added', 'conversation.item.created'],
]);

function reported(usage: Usage): object {
  const { input = 0, input_audio: audio = 0, input_image: image = 0, output = 0, output_audio: spoken = 0 } = usage;
  const { cache_read: cachedText = 0, cache_read_audio: cachedAudio = 0, cache_read_image: cachedImage = 0 } = usage;
  const cached = cachedText + cachedAudio + cachedImage;
  const [inputTokens, outputTokens] = [input + audio + image + cached, output + spoken];
  return {
    total_tokens: inputTokens + outputTokens,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    input_token_details: {
      text_tokens: input + cachedText,
      audio_tokens: audio + cachedAudio,
      image_tokens: image + cachedImage,
      cached_tokens: cached,
      cached_tokens_details: { text_tokens: cachedText, audio_tokens: cachedAudio, image_tokens: cachedImage },
    },
    output_token_details: { text_tokens: output, audio_tokens: spoken },
  };
}

function isLoud(audio: Buffer): boolean {
  if (secondsOf(audio.length) === 0) return false;
  for (let at = 0; at + 1 < audio.length; at += 64) if (Math.abs(audio.readInt16LE(at)) > loudness) return true;
  return false;
}
