/** Speech and transcriptions in the protocol of OpenAI: sound of the text's length, and texts that describe the audio. */
import { audioSeconds, sourceOf } from '../../common/audio/duration.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import { badRequest, Fault } from '../fault.ts';
import { isObject, type JsonObject, textOf } from '../json.ts';
import { parse } from '../request-body.ts';
import { type Directives, parseDirectives } from '../script/directives.ts';
import { piecesOf, tokensOf } from '../script/tokens.ts';
import type { Job, Service, ServiceRequest } from './service.ts';
import { mp3Silence, pcmTone, wavTone } from './tones.ts';

const charactersPerSecond = 15;
const longestSeconds = 600;
const audioTokensPerSecond = 20;
const pieceBytes = 16 * 1024;

/** Models of this name are billed by characters, or by seconds, and report no tokens. */
const byCharacters = /^tts-1/;
const bySeconds = /^whisper/;

const sounds = {
  mp3: { type: 'audio/mpeg', make: mp3Silence },
  wav: { type: 'audio/wav', make: wavTone },
  pcm: { type: 'audio/pcm', make: pcmTone },
};

export const openaiSpeech: Service = { errors: 'envelope', decode: ({ body }) => speechJob(parse(body)) };
export const openaiTranscriptions: Service = { errors: 'envelope', decode: transcriptionJob };

function speechJob(json: JsonObject): Job {
  const model = required(json, 'model');
  const { text, directives } = parseDirectives(required(json, 'input'));
  if (!isObject(json['voice'])) required(json, 'voice');
  const format = json['response_format'] ?? 'mp3';
  const sound = Object.hasOwn(sounds, String(format)) ? sounds[format as keyof typeof sounds] : undefined;
  if (sound === undefined) throw badRequest('The sandbox speaks mp3, wav and pcm.', 'response_format');
  const isEvents = json['stream_format'] === 'sse';
  if (isEvents && byCharacters.test(model)) throw badRequest(`sse is not supported for ${model}.`, 'stream_format');
  const seconds = Math.min(longestSeconds, Math.max(0.1, text.length / charactersPerSecond));
  const audio = sound.make(seconds);
  const pieces = Array.from({ length: Math.ceil(audio.length / pieceBytes) }, (_, index) =>
    audio.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  );
  const tokens = { input: tokensOf(text.length), output_audio: Math.ceil(seconds * audioTokensPerSecond) };
  const usage = byCharacters.test(model) ? { character: [...required(json, 'input')].length } : tokens;
  if (!isEvents) return { model, directives, usage, type: sound.type, body: pieces };
  const deltas = pieces.map((piece) => eventOf({ type: 'speech.audio.delta', audio: piece.toString('base64') }));
  const { input, output_audio: output } = tokens;
  const counts = { input_tokens: input, output_tokens: output, total_tokens: input + output };
  const done = eventOf({ type: 'speech.audio.done', ...(directives.no_usage ? {} : { usage: counts }) });
  return { model, directives, usage, type: 'text/event-stream', body: ended(deltas, done, directives) };
}

function required(json: JsonObject, name: string): string {
  const text = textOf(json[name]);
  if (text === undefined || text === '') throw badRequest(`Missing required parameter: '${name}'.`, name);
  return text;
}

const eventOf = (event: { readonly type: string } & Record<string, unknown>) =>
  formatFrame(JSON.stringify(event), event.type);

function ended(
  deltas: readonly string[],
  done: string,
  { no_terminal: isOpen, mid_error: error }: Directives,
): string[] {
  const half = deltas.slice(0, Math.ceil(deltas.length / 2));
  if (error !== undefined)
    return [
      ...half,
      formatFrame(JSON.stringify({ type: 'error', error: { message: 'failed', code: String(error) } }), 'error'),
    ];
  return isOpen ? [...deltas] : [...deltas, done];
}

interface Heard {
  readonly model: string;
  readonly text: string;
  readonly seconds: number;
  readonly directives: Directives;
}

async function transcriptionJob({ headers, body }: ServiceRequest): Promise<Job> {
  const form = await formIn(body, headers['content-type'] ?? '');
  const file = form.get('file');
  if (!(file instanceof File) || file.size === 0) throw badRequest("Missing required parameter: 'file'.", 'file');
  const seconds = await audioSeconds(sourceOf(new Uint8Array(await file.arrayBuffer())));
  if (seconds === undefined) throw badRequest('Audio file might be corrupted or unsupported', 'file');
  const model = fieldOf(form, 'model');
  if (model === '') throw badRequest('you must provide a model parameter', 'model');
  const { text: prompt, directives } = parseDirectives(fieldOf(form, 'prompt'));
  const context = prompt === '' ? '' : ` Its prompt was: ${prompt}`;
  const text = `The sandbox has heard ${Math.round(seconds * 10) / 10} seconds of ${file.name}.${context}`;
  const heard = { model, text, seconds, directives };
  const usage = usageOf(heard);
  const stream = fieldOf(form, 'stream') === 'true';
  if (stream && bySeconds.test(model)) throw badRequest(`stream is not supported for ${model}.`, 'stream');
  if (stream) return { model, directives, usage, type: 'text/event-stream', body: eventsOf(heard) };
  const [type, answer] = wholeOf(fieldOf(form, 'response_format') || 'json', heard);
  return { model, directives, usage, type, body: answer };
}

async function formIn(body: Buffer, contentType: string): Promise<FormData> {
  try {
    return await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData();
  } catch {
    throw new Fault(400, 'We could not parse the form of your request.');
  }
}

function fieldOf(form: FormData, name: string): string {
  const value = form.get(name) ?? '';
  if (typeof value === 'string') return value;
  throw badRequest(`The field '${name}' takes no file.`, name);
}

function usageOf({ model, seconds, text }: Heard): Job['usage'] {
  if (bySeconds.test(model)) return { audio: Math.ceil(seconds) };
  return { input_audio: Math.ceil(seconds * audioTokensPerSecond), output: tokensOf(text.length) };
}

function countsOf(heard: Heard): object {
  if (heard.directives.no_usage) return {};
  const { audio, input_audio: tokens = 0, output = 0 } = usageOf(heard);
  if (audio !== undefined) return { usage: { type: 'duration', seconds: audio } };
  const details = { input_token_details: { text_tokens: 0, audio_tokens: tokens } };
  return {
    usage: { type: 'tokens', input_tokens: tokens, ...details, output_tokens: output, total_tokens: tokens + output },
  };
}

function eventsOf(heard: Heard): string[] {
  const deltas = piecesOf(heard.text, undefined).map((delta) => eventOf({ type: 'transcript.text.delta', delta }));
  const done = eventOf({ type: 'transcript.text.done', text: heard.text, ...countsOf(heard) });
  return ended(deltas, done, heard.directives);
}

function wholeOf(format: string, heard: Heard): [type: string, body: string] {
  const { text, seconds } = heard;
  const [start, end] = [clockOf(0), clockOf(seconds)];
  if (format === 'text') return ['text/plain; charset=utf-8', `${text}\n`];
  if (format === 'srt')
    return ['text/plain; charset=utf-8', `1\n${start.replace('.', ',')} --> ${end.replace('.', ',')}\n${text}\n\n\n`];
  if (format === 'vtt') return ['text/plain; charset=utf-8', `WEBVTT\n\n${start} --> ${end}\n${text}\n\n`];
  const json = (body: object): [string, string] => ['application/json', JSON.stringify(body)];
  if (format === 'json') return json({ text, ...countsOf(heard) });
  if (format !== 'verbose_json') throw badRequest(`response_format '${format}' is not supported.`, 'response_format');
  const segment = { id: 0, seek: 0, start: 0, end: seconds, text, tokens: [], temperature: 0 };
  const scores = { avg_logprob: -0.1, compression_ratio: 1, no_speech_prob: 0 };
  const common = { task: 'transcribe', language: 'english', duration: seconds, text };
  return json({ ...common, segments: [{ ...segment, ...scores }], ...countsOf(heard) });
}

/** `00:00:03.500`. */
function clockOf(seconds: number): string {
  return new Date(Math.round(seconds * 1_000)).toISOString().slice(11, 23);
}
