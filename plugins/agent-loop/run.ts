/** One run: turns of the model with calls of tools between them, until it answers or a bound is met. */
import type { DirectAnswer } from '../../core/contract/contract.ts';
import { type ErrorKind, errorStatus, GatewayError } from '../../core/contract/errors.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import { isObject, type JsonObject, tryParse } from '../../core/json/json.ts';
import { boundedText } from '../common/kit/fetch/bounded-text.ts';
import { FrameReader, parseFrame } from '../common/kit/sse.ts';
import type { RunBounds } from './budget.ts';
import type { LoopConfig } from './config.ts';
import type { Offered } from './offered.ts';
import type { Steps } from './steps.ts';
import type { End, Talk, ToolDone, ToolUse } from './talk.ts';

/** A turn was refused: the client gets this answer. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly answer: Pick<DirectAnswer, 'status' | 'headers'>;
  readonly body: string;

  constructor(answer: DirectAnswer, body: string) {
    super(`a turn was answered with ${answer.status}`);
    this.answer = answer;
    this.body = body;
  }
}

export interface RunTools {
  readonly steps: Steps;
  readonly talk: Talk;
  readonly offered: Offered;
  readonly config: LoopConfig;
  readonly clock: Clock;
  readonly streams: boolean;
  readonly bounds: Pick<RunBounds, 'turns' | 'calls'>;
}

export class Run {
  readonly #tools: RunTools;
  readonly #until: number;
  #bytes = 0;
  /** How the run has ended; undefined: a turn's stream has ended with an error, which the client was sent. */
  end: End | undefined;

  constructor(tools: RunTools) {
    this.#tools = tools;
    this.#until = tools.clock.monotonic() + tools.config.deadline;
  }

  /** Yields the frames of a stream, and nothing of a whole answer; `first`: called when the first turn was not refused. */
  async *steps(first: () => void): AsyncGenerator<string> {
    const { talk, steps } = this.#tools;
    talk.approvedDone(await Promise.all(talk.approved.map((use) => this.#call(use))));
    for (;;) {
      const { answer, ended } = await steps.turn(talk.body());
      if (answer.status >= 400) {
        const body = await this.#text(answer);
        await ended();
        // Money that ends in the middle of a run ends it with what it has.
        if (answer.status === 402 && steps.turns > 1) return yield* this.#finish('bound');
        throw new Refused(answer, body);
      }
      first();
      const whole = this.#tools.streams ? yield* this.#streamed(answer) : objectIn(await this.#text(answer));
      await ended();
      if (whole === undefined) return;
      const end = yield* this.#made(whole);
      if (end !== undefined) return yield* this.#finish(end);
    }
  }

  /** Makes the calls of a turn. undefined: the run goes on. */
  async *#made(whole: JsonObject): AsyncGenerator<string, End | undefined> {
    const { talk, steps, offered, bounds, streams } = this.#tools;
    const { own, hasOthers, isCut } = talk.take(whole);
    if (own.length === 0 || isCut || (hasOthers && !talk.keepsCalls)) return 'done';
    const asked = own.filter(({ name }) => offered.find(name)!.wanted.asks(name));
    const runs = own.filter((use) => !asked.includes(use));
    if (steps.calls + runs.length > bounds.calls) return 'bound';
    const results = this.#callAll(runs);
    const done: ToolDone[] = [];
    for (const [index, use] of runs.entries()) {
      if (streams) yield talk.frames.called(use);
      done.push(await results[index]!);
      if (streams) yield talk.frames.done(done.at(-1)!);
    }
    talk.add(done);
    talk.ask(asked);
    if (streams) yield talk.frames.asked(asked);
    if (asked.length > 0 || hasOthers) return 'done';
    const isOver = steps.turns >= bounds.turns || this.#tools.clock.monotonic() >= this.#until;
    return isOver || steps.isOutOfMoney || this.#bytes > this.#tools.config.answer ? 'bound' : undefined;
  }

  async *#finish(end: End): AsyncGenerator<string> {
    this.end = end;
    if (this.#tools.streams) yield this.#tools.talk.frames.end(end);
  }

  /** At most so many at once; results in the order of the calls. */
  #callAll(uses: readonly ToolUse[]): Promise<ToolDone>[] {
    const ends: Promise<unknown>[] = [];
    return uses.map((use, index) => {
      const before =
        index < this.#tools.config.parallel ? Promise.resolve() : ends[index - this.#tools.config.parallel]!;
      const result = before.then(() => this.#call(use));
      ends.push(result.catch(() => {}));
      return result;
    });
  }

  #call(use: ToolUse): Promise<ToolDone> {
    return this.#tools.steps.call(use, this.#tools.offered.find(use.name)!.wanted);
  }

  async #text(answer: DirectAnswer): Promise<string> {
    const text = await boundedText(answer, this.#tools.config.answer, tooLong);
    this.#bytes += text.length;
    return text;
  }

  async *#streamed(answer: DirectAnswer): AsyncGenerator<string, JsonObject | undefined> {
    const { frames } = this.#tools.talk;
    let made: string[] = [];
    const reader = new FrameReader((raw) => {
      const event = parseFrame(raw);
      const data = event === undefined ? undefined : tryParse(event.data);
      if (event !== undefined) made.push(frames.frame(event.event, isObject(data) ? data : undefined));
    });
    for await (const chunk of answer.body) {
      this.#bytes += chunk.length;
      if (this.#bytes > 2 * this.#tools.config.answer) throw tooLong();
      reader.feed(chunk);
      const text = made.join('');
      made = [];
      if (text !== '') yield text;
    }
    return frames.answer();
  }
}

function objectIn(text: string): JsonObject {
  const json = tryParse(text);
  if (isObject(json)) return json;
  throw new GatewayError('upstream_failed', 'The model gave no answer that can be read.', { shouldRetry: false });
}

const tooLong = () =>
  new GatewayError('upstream_failed', 'The answers of this run are too long.', { shouldRetry: false });

/** A refused turn inside a stream that has begun. */
export function errorOf({ answer: { status }, body }: Refused): GatewayError {
  const json = tryParse(body);
  const error = isObject(json) && isObject(json['error']) ? json['error'] : {};
  const kind =
    (Object.keys(errorStatus) as ErrorKind[]).find((one) => errorStatus[one] === status) ?? 'upstream_failed';
  const message = typeof error['message'] === 'string' ? error['message'] : 'A turn of this run was refused.';
  return new GatewayError(kind, message, {
    ...(typeof error['code'] === 'string' ? { code: error['code'] } : {}),
    shouldRetry: false,
  });
}
