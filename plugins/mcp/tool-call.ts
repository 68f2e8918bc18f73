/** A tool call as an attempt: recorded before it is sent, charged when it has succeeded. */
import { ProtocolError, type ServerContext } from '@modelcontextprotocol/server';
import type { Exchange, Next } from '../../core/contract/contract.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import type { Answer } from '../../core/contract/message.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { Attempt } from '../common/domain/calls.ts';
import { defineOperatorEvent, recordEvent } from '../common/domain/timeline.ts';
import { OwnAttempt } from '../common/kit/fetch/own-attempt.ts';
import { invalidParams, Unavailable, WrongArguments } from './errors.ts';
import type { Asked } from './request.ts';
import { relayed, serve, type ToolCaller } from './serve.ts';
import type { FoundTool } from './servers.ts';

const calledEvent = defineOperatorEvent(
  'mcp.called',
  (server: string, tool: string, end: string, durationMs: number) =>
    `the tool ${tool} of ${server} ${ends[end as keyof typeof ends] ?? end} after ${durationMs} ms`,
);
const ends = { not_sent: 'was not sent', answered: 'answered', refused: 'failed', unknown: 'gave no answer' };

/** No tool is called that the request may use. */
const noTool = ({ unavailable }: Asked): ToolCaller => ({
  run: async ({ name }) => {
    if (unavailable !== undefined) throw unavailable;
    throw new ProtocolError(invalidParams, `Unknown tool: ${String(name).slice(0, 128)}`);
  },
  ended: async () => {},
});

/** The call goes through the centre, so that it is journaled as any attempt is. */
export function callTool(
  exchange: Exchange,
  asked: Asked,
  signal: AbortSignal,
  clock: Clock,
  next: Next,
): Promise<Answer> {
  const { found } = asked;
  if (found === undefined) return serve(exchange, asked, signal, noTool(asked));
  const running = new RunningCall(found, exchange, clock);
  running.sendOver(true, async ({ begin }) => {
    const caller = running.begunBy(begin);
    try {
      return await serve(exchange, asked, signal, caller);
    } finally {
      // A client that has left pays for what was sent, which is known when the call is over.
      if (signal.aborted) await caller.ended();
    }
  });
  return next();
}

class RunningCall extends OwnAttempt {
  readonly #found: FoundTool;
  readonly #clock: Clock;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(found: FoundTool, exchange: Exchange, clock: Clock) {
    const { provider, model } = found.entry.targets[0]!;
    super(exchange, { provider, model, credential: provider, protocol: 'mcp' }, clock.now());
    this.#found = found;
    this.#clock = clock;
  }

  /** For clients of earlier revisions, the library asks again a server that asks for input: it is begun once. */
  begunBy(begin: () => Promise<void>): ToolCaller {
    return {
      run: (params, context) => {
        const result = this.begin(begin).then(() => this.#run(params, context));
        this.#ended = result.catch(() => {});
        return result;
      },
      ended: () => this.#ended,
    };
  }

  async #run(params: JsonObject, context: ServerContext): Promise<object> {
    const { upstream, tool } = this.#found;
    const since = this.#clock.monotonic();
    try {
      const result = await relayed(upstream, 'tools/call', { ...params, name: tool.name }, context, tool);
      if ('resultType' in result && result.resultType === 'input_required') this.#end('refused', 'input_required');
      else if ('isError' in result && result.isError === true) this.#end(this.#ifFailed, 'the tool reports an error');
      else this.#end('answered', undefined);
      return result;
    } catch (error) {
      return this.#failedBy(error, context.mcpReq.signal.aborted);
    } finally {
      const durationMs = Math.round(this.#clock.monotonic() - since);
      this.attempt.durationMs = durationMs;
      const values = [upstream.name, tool.name, this.attempt.result, durationMs] as const;
      recordEvent(this.exchange, this.#clock.now(), calledEvent, values);
    }
  }

  /** The result for the model that made the arguments, or a rejection with the error. */
  #failedBy(error: unknown, isCancelled: boolean): object {
    if (error instanceof WrongArguments) {
      this.#end('not_sent', error.message);
      return { content: [{ type: 'text', text: error.message }], isError: true };
    }
    const wasSent = !(error instanceof Unavailable) || error.mayHaveRun;
    // A client that cancels a call that was sent pays for it, however it cancels.
    const isPaid = wasSent && (isCancelled || this.#ifFailed === 'answered');
    const failed = error instanceof ProtocolError ? 'refused' : 'unknown';
    const unpaid = wasSent ? failed : 'not_sent';
    if (!isCancelled) this.attempt.failedFirst = true;
    this.#end(isPaid ? 'answered' : unpaid, isCancelled ? 'cancelled' : (error as Error).message);
    throw error;
  }

  /** A call that has failed costs nothing, unless its server's price says so. */
  get #ifFailed(): 'answered' | 'refused' {
    return this.#found.upstream.settings.price.failed ? 'answered' : 'refused';
  }

  #end(result: Attempt['result'], error: string | undefined): void {
    this.attempt.result = result;
    this.attempt.status = error === undefined ? 200 : undefined;
    this.attempt.error = error;
    if (result === 'answered') this.usage = { call: 1 };
    const { health } = this.#found;
    health.calls += 1;
    if (error === undefined) return;
    health.failed += 1;
    health.lastFailureAt = this.#clock.now();
  }
}
