/** `POST /v1/audio/transcriptions` and `/translations`: a form with a file, relayed; charged by tokens or by the file's duration. */
import { type JsonObject, objectOf } from '../../../core/json/json.ts';
import { audioSeconds } from '../../common/audio/duration.ts';
import { caller } from '../../common/domain/accounts.ts';
import type { UsageReport } from '../../common/domain/calls.ts';
import { readCount, type Usage } from '../../common/domain/usage.ts';
import { envelopeAnswer } from '../../common/kit/error-envelope.ts';
import { streamedForm } from '../../common/kit/forms/streamed-form.ts';
import type { AnswerContext, AnswerReader, EndpointDescription, Prepared } from '../description.ts';
import { unreadable } from '../errors.ts';
import { chargedTokens } from '../estimate.ts';
import { EventMeter } from '../events.ts';
import { completed, pricedIn } from '../metering.ts';
import { parseAnswer } from '../whole-json.ts';
import { bearer, wire } from '../wires.ts';
import { heardTokens, heldHeardTokens, heldTranscriptTokens, secondsOfUnknown } from './estimates.ts';
import { type AudioForm, mostOtherBytes, readAudioForm, replacedIn } from './form.ts';

function endpoint(operation: 'transcriptions' | 'translations', summary: string): EndpointDescription {
  return {
    path: `/v1/audio/${operation}`,
    operation: 'transcriptions',
    kind: 'transcription',
    summary,
    request: 'multipart',
    model: 'body',
    answers: ['application/json', 'text/plain', 'text/event-stream'],
    async open(exchange, { fileBytes }, spool) {
      const body = spool.enter(exchange.find(caller)?.accountId ?? '', fileBytes + mostOtherBytes);
      exchange.defer(() => body.close());
      const form = await readAudioForm(exchange.request, fileBytes, body);
      exchange.set(streamedForm, form.parts);
      const seconds = Math.ceil((await audioSeconds(form.file)) ?? secondsOfUnknown(form.file.length));
      return {
        call: {
          protocol: wire.openaiTranscriptions,
          model: form.model,
          stream: form.stream,
          billable: true,
          inputTokens: heldHeardTokens(seconds),
          maxOutputTokens: heldTranscriptTokens(seconds),
          choices: 1,
          kind: 'transcription',
          counted: { audio: seconds },
          convertsTo: [],
        },
        prepare: (target): Prepared => ({
          wire: bearer,
          path: `/audio/${operation}`,
          body: body.with([{ ...form.modelAt, text: target.model }, ...replacedIn(form)]),
          dropped: [],
          converted: false,
          answer: readerOf(form, seconds),
        }),
      };
    },
    renderError: envelopeAnswer,
  };
}

export const transcriptionEndpoints: readonly EndpointDescription[] = [
  endpoint('transcriptions', 'Transcribes the speech of an audio file.'),
  endpoint('translations', 'Transcribes the speech of an audio file in English.'),
];

function readerOf(form: AudioForm, seconds: number): AnswerReader {
  if (form.stream) return { form: 'stream', open: (_type, context) => openEvents(seconds, context) };
  return {
    form: 'whole',
    async read(body) {
      const seen = { input: heardTokens(seconds), audio: seconds };
      if (!form.isJson) return { usage: undefined, seen: { ...seen, output: chargedTokens(body.length) } };
      const json = await parseAnswer(body);
      if (typeof json['text'] !== 'string') throw unreadable('a transcription without a text');
      return { usage: usageIn(json), seen: { ...seen, output: chargedTokens(Buffer.byteLength(json['text'])) } };
    },
  };
}

/** Tokens, or seconds: those are rounded up to whole ones, as the vendors bill them. */
export function usageIn(json: JsonObject): Usage | undefined {
  const usage = objectOf(json['usage']);
  const [input, output] = [readCount(usage?.['input_tokens']), readCount(usage?.['output_tokens'])];
  if (input !== undefined && output !== undefined) {
    const audio = readCount(objectOf(usage?.['input_token_details'])?.['audio_tokens']);
    if (audio === undefined || audio > input) return { input, output };
    return { input: input - audio, input_audio: audio, output };
  }
  const seconds = usage?.['seconds'] ?? json['duration'];
  const audio = readCount(Math.ceil(typeof seconds === 'number' ? seconds : Number.NaN));
  return audio === undefined ? undefined : { audio };
}

function openEvents(seconds: number, context: AnswerContext): EventMeter {
  const report = new HeardReport(seconds, context);
  return new EventMeter(report, context, (event) => {
    if (event['type'] === 'transcript.text.delta' && typeof event['delta'] === 'string')
      report.textBytes += Buffer.byteLength(event['delta']);
    if (event['type'] !== 'transcript.text.done') return false;
    report.reported = usageIn(event);
    report.terminal = true;
    return true;
  });
}

class HeardReport implements UsageReport {
  reported: Usage | undefined;
  terminal = false;
  textBytes = 0;
  readonly upstreamId = undefined;
  readonly finish = undefined;
  readonly #seconds: number;
  readonly #context: AnswerContext;

  constructor(seconds: number, context: AnswerContext) {
    this.#seconds = seconds;
    this.#context = context;
  }

  get usage(): Usage {
    return this.#measured().usage;
  }

  get estimated(): boolean {
    return this.#measured().estimated;
  }

  #measured() {
    const seen = { input: heardTokens(this.#seconds), audio: this.#seconds, output: chargedTokens(this.textBytes) };
    return completed(this.reported, seen, pricedIn(this.#context.exchange));
  }
}
