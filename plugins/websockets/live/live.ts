/** Gemini Live: the first message names the model, a turn ends with `turnComplete`, and refusals are closes with a reason. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { isObject, objectOf, textOf, tryParseBytes } from '../../../core/json/json.ts';
import { applyEdits, editsFor, findMember, scanObject } from '../../../core/json/splice.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { type IsPriced, unmeteredMember, unpricedTool } from '../../common/wire/named.ts';
import type { ClientReading, Dialect, RelayProtocol, UpstreamReading } from '../relay/dialect.ts';
import type { Message } from '../relay/upstream.ts';
import { LiveAnswers } from './answer-reader.ts';
import { groundingUsage, liveUsage } from './usage.ts';

const versions = ['v1beta', 'v1alpha', 'v1'] as const;

/** One for each version of the interface; the upstream gets the same version. */
export const liveProtocols: readonly RelayProtocol[] = versions.map((version) => {
  const path = `/ws/google.ai.generativelanguage.${version}.GenerativeService.BidiGenerateContent`;
  return {
    name: 'gemini-live',
    base: '/ws',
    endpoint: path,
    wire: { auth: { header: 'x-goog-api-key', value: '{key}' }, passedHeaders: [], defaultHeaders: {} },
    path: () => path,
  };
});

/** Base64 bytes of 16 kHz audio for one token of the answer, which costs four times a token of the prompt. */
const bytesPerAudioToken = 6_800;
const bytesPerTextToken = 3;
const parsedBytes = 64 * 1024;
const prefix = 'models/';
const mark = (text: string) => Buffer.from(text);
const [setupMember, escapeSequence, dataMember] = [mark('"setup"'), mark('\\u'), mark('"data"')];
const begins = [mark('"modelTurn"'), mark('"toolCall"')];
const asking = ['"turnComplete"', '"turn_complete"', '"toolResponse"', '"tool_response"'].map(mark);
const looked = [mark('"usageMetadata"'), mark('"turnComplete"'), mark('"toolCall"'), mark('"groundingMetadata"')];

export class LiveDialect implements Dialect {
  readonly protocol: RelayProtocol;
  readonly cancel = undefined;
  readonly answers = new LiveAnswers();
  isResponding = false;
  /** The turn has ended, and its usage has not arrived yet. */
  #isAwaited = false;
  #usage: Usage | undefined;
  /** Runs of the vendor's own tools in the turn. */
  #runs: Usage = {};
  /** The last charged report, until another turn begins: such a report that comes again is the same one. */
  #charged: string | undefined;

  constructor(protocol: RelayProtocol) {
    this.protocol = protocol;
  }

  modelIn({ data }: Message): string | undefined {
    const model = textOf(objectOf(objectOf(tryParseBytes(data))?.['setup'])?.['model']);
    if (model === undefined || model.length > 200) return undefined;
    return model.startsWith(prefix) ? model.slice(prefix.length) : model;
  }

  checkFirst({ data }: Message, model: string, isPriced: IsPriced): GatewayError | undefined {
    const setup = objectOf(objectOf(tryParseBytes(data))?.['setup']) ?? {};
    return (
      unmeteredMember('gemini', setup, new Set([model]), 'setup') ?? unpricedTool('gemini', setup, isPriced, 'setup')
    );
  }

  withModel({ data, isBinary }: Message, model: string): Message {
    const outer = findMember(scanObject(data), 'setup')!;
    const setup = data.subarray(outer.valueStart, outer.end);
    const edits = editsFor(scanObject(setup), { replace: { model: JSON.stringify(prefix + model) } });
    const changed = [data.subarray(0, outer.valueStart), applyEdits(setup, edits), data.subarray(outer.end)];
    return { data: Buffer.concat(changed), isBinary };
  }

  client({ data }: Message): ClientReading {
    const mayBeSetup = data.includes(setupMember) || data.includes(escapeSequence);
    const json = mayBeSetup ? tryParseBytes(data) : undefined;
    if (isObject(json) && 'setup' in json) return { refusal: secondSetup(), needsHold: false, tokens: 0 };
    return {
      needsHold: true,
      asks: asksForTurn(data),
      tokens: data.length / (data.includes(dataMember) ? bytesPerAudioToken : bytesPerTextToken),
    };
  }

  upstream({ data }: Message): UpstreamReading | undefined {
    const isBeginning = !this.isResponding && begins.some((name) => data.includes(name));
    if (isBeginning) {
      this.isResponding = true;
      this.#charged = undefined;
    }
    if (!looked.some((name) => data.includes(name))) return isBeginning ? { begins: true } : undefined;
    const event = objectOf(tryParseBytes(data)) ?? {};
    // Reports within a turn replace one another.
    this.#usage = liveUsage(event['usageMetadata']) ?? this.#usage;
    this.#runs = { ...this.#runs, ...groundingUsage(objectOf(event['serverContent'])?.['groundingMetadata']) };
    if (objectOf(event['serverContent'])?.['turnComplete'] === true || isObject(event['toolCall']))
      this.#isAwaited = true;
    if (this.isResponding && !this.#isAwaited) return { begins: isBeginning };
    const usage = this.#usage && { ...this.#usage, ...this.#runs };
    if (usage === undefined) return { begins: isBeginning };
    this.isResponding = false;
    this.#isAwaited = false;
    this.#usage = undefined;
    this.#runs = {};
    const report = JSON.stringify(usage);
    if (report === this.#charged) return { answers: true };
    this.#charged = report;
    return { begins: isBeginning, answers: true, metered: { usage } };
  }

  refusal(): undefined {
    return undefined;
  }

  error(): undefined {
    return undefined;
  }
}

/** Whether a turn of the model follows in any case, not where the upstream decides by the audio. Larger messages count without parsing. */
function asksForTurn(data: Buffer): boolean {
  if (!asking.some((name) => data.includes(name))) return false;
  if (data.length > parsedBytes) return true;
  const json = objectOf(tryParseBytes(data)) ?? {};
  const content = objectOf(json['clientContent'] ?? json['client_content']) ?? {};
  const isComplete = (content['turnComplete'] ?? content['turn_complete']) === true;
  return isComplete || isObject(json['toolResponse'] ?? json['tool_response']);
}

function secondSetup(): GatewayError {
  return new GatewayError('invalid_request', 'A session is set up once; open another one.', { field: 'setup' });
}
