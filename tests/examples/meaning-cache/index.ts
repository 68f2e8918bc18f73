/** A cache of meaning: a question that is nearly the same as an earlier one of its account gets that answer, before anything is charged. */
import { createHash } from 'node:crypto';
import { type Answer, definePlugin, duration, type Exchange, z } from 'model-gateway';
import { call, caller, type PromptTexts, promptRules, usageReport } from 'model-gateway/domain';
import { type Embed, embedderOf, nearness } from './embed.ts';

interface Entry {
  readonly vector: readonly number[];
  readonly answer: Pick<Answer, 'status' | 'headers'> & { readonly body: Uint8Array };
  readonly endsAt: number;
}

/** Protocols of which an answer stands for itself: one of responses may be kept by its vendor, and continued. */
const operations = new Set(['chat', 'messages', 'generate-content']);
const mostBytes = 1_000_000;

export default definePlugin({
  name: 'meaning-cache',
  config: z.strictObject({
    model: z.string().optional().describe('Model of embeddings, whose price the client pays; default: by letters.'),
    nearness: z.number().min(0.5).max(1).default(0.9).describe('How near two questions are that get one answer.'),
    keep: duration().prefault('10m').describe('How long an answer is given again.'),
    answers: z.int().min(1).default(1_000).describe('Answers that are kept, of all accounts; the oldest go first.'),
  }),
  services: { requires: [promptRules] },
  requires: [call, caller],
  requiresAtEnd: [usageReport],
  setup(host, { model, nearness: least, keep, answers }) {
    const known = new Entries(answers);
    const embed = embedderOf(host, model);
    const rules = host.get(promptRules);
    return {
      applies: ({ operation, setsOnOpen = [] }) => operations.has(operation) && setsOnOpen.includes(call),
      async handle(exchange, next) {
        const question = exchange.get(call).billable ? questionOf(exchange, rules.textsOf(exchange)) : undefined;
        const vector = question && (await tryEmbed(embed, exchange, question.text));
        if (question === undefined || vector === undefined) return next();
        const now = host.clock.monotonic();
        const found = known.find(question.rest, (one) => one.endsAt > now && nearness(one.vector, vector) >= least);
        if (found !== undefined) return { ...found.answer, headers: { ...found.answer.headers, 'x-cache': 'near' } };
        const answer = await next();
        if (answer.status !== 200) return answer;
        const copy: Uint8Array[] = [];
        exchange.defer(({ kind, error }) => {
          const { status, headers } = answer;
          const body = Buffer.concat(copy);
          const isWhole = kind === 'complete' && error === undefined && exchange.find(usageReport)?.terminal === true;
          if (!isWhole || body.length > mostBytes) return;
          known.add(question.rest, { vector, answer: { status, headers, body }, endsAt: now + keep });
        });
        return { ...answer, body: copied(answer.body, copy) };
      },
    };
  },
});

/** Without an embedding the call is made as if there was no cache. */
function tryEmbed(embed: Embed, exchange: Exchange, text: string): Promise<readonly number[] | undefined> {
  return embed(exchange, text).catch((error: unknown) => {
    exchange.log.warn({ error }, 'a question could not be embedded');
    return undefined;
  });
}

/** The last message, and a digest of all else; undefined: there is more in the request than texts. */
function questionOf(exchange: Exchange, { texts, unread }: Pick<PromptTexts, 'texts' | 'unread'>) {
  const last = texts.findLast(({ kind, role }) => kind === 'text' && role === 'user');
  if (last === undefined || unread.length > 0) return undefined;
  const { path, query, body } = exchange.request;
  // Where the client has written the text in another way, all of it is in the digest, and only an equal request is near.
  const rest = Buffer.from(body)
    .toString()
    .replace(JSON.stringify(last.text), () => '""');
  const { accountId } = exchange.get(caller);
  const digest = createHash('sha256').update(JSON.stringify([accountId, path, query.toString(), rest]));
  return { text: last.text, rest: digest.digest('hex') };
}

async function* passing(body: AsyncIterable<Uint8Array>, copy: Uint8Array[]): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes <= mostBytes + chunk.length) copy.push(chunk);
    yield chunk;
  }
}

function copied(body: Answer['body'], copy: Uint8Array[]): Answer['body'] {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return passing(body, copy);
  copy.push(Buffer.from(body));
  return body;
}

/** By the digest of all but the question. */
class Entries {
  readonly #all = new Set<{ readonly rest: string; readonly entry: Entry }>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  find(rest: string, fits: (entry: Entry) => boolean): Entry | undefined {
    for (const one of this.#all) if (one.rest === rest && fits(one.entry)) return one.entry;
    return undefined;
  }

  add(rest: string, entry: Entry): void {
    this.#all.add({ rest, entry });
    for (const oldest of this.#all) {
      if (this.#all.size <= this.#most) break;
      this.#all.delete(oldest);
    }
  }
}
