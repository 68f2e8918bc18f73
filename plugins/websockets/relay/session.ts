/** A relayed session: passes messages on unchanged; money is held and charged for each response. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { toGatewayError, UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { errorShape } from '../../common/domain/error-shape.ts';
import { classifyFrame } from '../../common/kit/upstream-errors.ts';
import { type Connection, closeCode, type Session, upgradeFields } from '../connection.ts';
import { type AnswerGate, gateOf } from './answers/gate.ts';
import { Charges, type Opening, pricedTools, type RelayTools, throughRules } from './charges.ts';
import type { UpstreamReading } from './dialect.ts';
import { Lane, longestFor } from './lane.ts';
import { reasonOf, withoutSecrets } from './shown-errors.ts';
import { errorOf, type RelayStep } from './step.ts';
import { type Message, UpstreamSocket } from './upstream.ts';

/** How long to wait for the usage of a response that was cut short. */
const drainMs = 5_000;
/** Bytes of the answer for one token, in audio as base64 or in events with text. */
const bytesPerToken = 3_200;

export class RelaySession implements Session {
  readonly #tools: RelayTools;
  readonly #opening: Opening;
  readonly #charges: Charges;
  readonly #abort = new AbortController();
  readonly #fromClient = new Lane(
    (message) => this.#relayUp(message),
    () => this.#connection,
    (error) => this.#failed(error),
    (bytes) => this.#connection?.keep(bytes) !== false,
  );
  readonly #fromUpstream = new Lane(
    (message) => this.#relayDown(message),
    () => this.#upstream,
    (error) => this.#failed(error),
  );
  #connection: Connection | undefined;
  /** Sent before the client's messages. */
  #settings: Buffer | undefined;
  #upstream: UpstreamSocket | undefined;
  #gate: AnswerGate | undefined;
  /** The key that the upstream was called with. */
  #key = () => '';
  /** Set when the session ends: nothing is relayed any more. */
  #isOver = false;
  /** A response was asked for, and neither it nor an error has come yet. */
  #isAwaited = false;
  /** Resolves once no response is running any more. */
  #onQuiet: (() => void) | undefined;
  /** Closes the session when no response is running. */
  #ending: (() => void) | undefined;
  #refusedAt = Number.NEGATIVE_INFINITY;

  /** `protocol`: its name in metrics. */
  constructor(tools: RelayTools, protocol: string, opening: Opening) {
    this.#tools = tools;
    this.#opening = opening;
    this.#charges = new Charges(tools, protocol, opening);
  }

  get isIdle(): boolean {
    return this.#charges.isIdle;
  }

  get #isResponding(): boolean {
    return this.#isAwaited || this.#opening.dialect.isResponding;
  }

  /** Finds a target and connects to it. Rejects as a request would be refused. */
  async connect(model: string, first?: Message): Promise<void> {
    const { connections } = this.#tools;
    const { settings } = this.#opening;
    this.#gate = gateOf(this.#tools.host, this.#opening, model, (bytes) => this.#connection?.keep(bytes) !== false);
    const kept = settings && (await throughRules(this.#tools, this.#opening, { data: settings, isBinary: false }));
    this.#settings = kept?.data ?? settings;
    const isPriced = pricedTools(this.#tools.host, model);
    const refused = first && this.#opening.dialect.checkFirst?.(first, model, isPriced);
    if (refused !== undefined) throw refused;
    const step: RelayStep = {
      call: this.#charges.begin(model),
      report: { usage: {}, estimated: false, terminal: true, upstreamId: undefined, finish: undefined },
      send: async (request, target, { signal }): Promise<Answer> => {
        const { dialect } = this.#opening;
        const opened = await UpstreamSocket.open(request, {
          signal,
          maxBytes: connections.config.message,
          first: first === undefined ? undefined : (dialect.withModel?.(first, target.model) ?? first),
        });
        if (!(opened instanceof UpstreamSocket)) return opened;
        const refusal = dialect.refusal(opened.greeting);
        if (refusal !== undefined || this.#isOver) {
          opened.close();
          if (refusal !== undefined) throw classifyFrame(refusal, this.#tools.host.clock.now(), target.key.reveal());
          throw new UpstreamError('connect', 'the client has disconnected');
        }
        dialect.opened?.(target.model, target.upstream, isPriced);
        this.#upstream = opened;
        this.#charges.pinTo(target);
        this.#key = () => target.key.reveal();
        return { status: 200, headers: { 'content-type': 'application/json' }, body: '' };
      },
    };
    const answer = await this.#charges.perform(step, this.#opening.caller, undefined, this.#abort.signal);
    const error = await errorOf(answer);
    if (error !== undefined || answer.status !== 200) throw error ?? new GatewayError('internal', 'No session.');
  }

  /** The client's connection is open: messages pass from now on. */
  begin(connection: Connection): this {
    this.#connection = connection;
    if (this.#upstream !== undefined) this.#listen(this.#upstream);
    return this;
  }

  #listen(upstream: UpstreamSocket): void {
    const settings = this.#settings;
    if (settings !== undefined) {
      const refusal = this.#opening.dialect.client({ data: settings, isBinary: false }).refusal;
      // They were kept before the target was known.
      if (refusal?.code === 'resource_not_found' || refusal?.code === 'tool_not_priced') {
        this.#failed(refusal);
        return;
      }
      void upstream.send({ data: settings, isBinary: false });
    }
    upstream.listen(
      (message) => this.#fromUpstream.push(message),
      (code) => this.#fromUpstream.finish(() => this.#upstreamClosed(code)),
    );
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    if (!this.#isOver) this.#fromClient.push({ data, isBinary });
  }

  refuse(error: GatewayError): void {
    this.#say(error);
    this.#end();
  }

  onClose(): void {
    this.abandon();
  }

  /** The client has left, before or after its connection was opened. */
  abandon(): void {
    this.#abort.abort();
    this.#end();
  }

  drain(): void {
    this.#endWith(() => this.#connection?.close(closeCode.restart, 'the gateway restarts'));
  }

  expire(): void {
    this.#endWith(() => {
      this.#say(
        new GatewayError('invalid_request', 'The session has been open as long as it may.', {
          code: 'session_expired',
        }),
      );
      this.#connection?.close(closeCode.goingAway, 'open for too long');
    });
  }

  #endWith(end: () => void): void {
    if (this.#ending !== undefined || this.#isOver) return;
    this.#ending = () => {
      end();
      this.#end();
    };
    if (!this.#isResponding) this.#ending();
  }

  // ---------------------------------------------------------------------------------------------- from client to upstream

  #relayUp(message: Message): Promise<void> | undefined {
    if (this.#isOver) return undefined;
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#opening;
    if (this.#tools.host.clock.now() >= expiresAt)
      return void this.#failed(new GatewayError('unauthenticated', 'The token has expired.'));
    if (this.#upstream === undefined) return this.#beginWith(message);
    const passed = this.#passed(message);
    return passed instanceof Promise
      ? passed.then((sent) => sent && this.#relayPassed(sent))
      : passed && this.#relayPassed(passed);
  }

  /** As the rules for prompts leave it; undefined: they refuse it, and the client knows. */
  #passed(message: Message): Message | undefined | Promise<Message | undefined> {
    const refused = (error: unknown) => void this.#refused(error);
    try {
      const passed = throughRules(this.#tools, this.#opening, message) ?? message;
      return passed instanceof Promise ? passed.then((sent) => sent ?? message, refused) : passed;
    } catch (error) {
      return refused(error);
    }
  }

  #relayPassed(message: Message): Promise<void> | undefined {
    const upstream = this.#upstream;
    if (upstream === undefined || this.#isOver) return undefined;
    const { refusal, replaced, needsHold, asks = false, tokens } = this.#opening.dialect.client(message);
    if (refusal !== undefined) return this.#say(refusal);
    this.#charges.added += tokens;
    const sent = replaced === undefined ? message : { data: replaced, isBinary: message.isBinary };
    if (needsHold && !this.#charges.holds) return this.#sendHeld(upstream, sent, asks);
    if (this.#charges.holds) this.#observe(tokens);
    return this.#send(upstream, sent, asks);
  }

  /** The first message names the model where the address does not. */
  async #beginWith(requested: Message): Promise<void> {
    const admitted = (await this.#opening.admit?.(requested)) ?? requested;
    const message = (await throughRules(this.#tools, this.#opening, admitted)) ?? admitted;
    const model = this.#opening.dialect.modelIn?.(message);
    if (model === undefined) throw new GatewayError('invalid_request', 'The first message must name the model.');
    await this.connect(model, message);
    if (this.#isOver || this.#upstream === undefined) return void this.#upstream?.close();
    this.#listen(this.#upstream);
  }

  #send(upstream: UpstreamSocket, message: Message, asks: boolean): Promise<void> | undefined {
    // The client may have left while money was held.
    if (this.#isOver) return undefined;
    if (asks) this.#isAwaited = true;
    return upstream.send(message);
  }

  async #sendHeld(upstream: UpstreamSocket, message: Message, asks: boolean): Promise<void> {
    const refusal = await this.#charges.hold();
    if (refusal === undefined) await this.#send(upstream, message, asks);
    else if (refusal.kind === 'rate_limited' || refusal.kind === 'overloaded') await this.#sayOnce(refusal);
    else this.#failed(refusal);
  }

  #observe(tokens: number): void {
    if (!this.#charges.observe(tokens)) this.#failed(this.#charges.usedUp);
  }

  // ---------------------------------------------------------------------------------------------- from upstream to client

  #relayDown(message: Message): Promise<void> | undefined {
    const reading = this.#opening.dialect.upstream(message);
    if (reading !== undefined) return this.#relayRead(message, reading);
    if (this.#charges.holds) this.#observe(message.data.length / bytesPerToken);
    return this.#toClient(message);
  }

  #toClient(message: Message): Promise<void> | undefined {
    const send = ({ data, isBinary }: Message) => this.#connection?.send(data, isBinary);
    if (this.#gate === undefined) return send(message);
    return this.#gate.deliver(message, send, (error) => {
      if (this.#opening.dialect.isResponding) this.#cancel();
      return this.#refused(error);
    });
  }

  /** What a message or an answer is refused for: the session goes on where the protocol has errors. */
  #refused(error: unknown): Promise<void> | undefined {
    if (error instanceof GatewayError && this.#opening.dialect.error(error) !== undefined) return this.#say(error);
    return void this.#failed(error);
  }

  #cancel(): void {
    const { cancel } = this.#opening.dialect;
    if (cancel !== undefined) void this.#upstream?.send({ data: Buffer.from(cancel), isBinary: false });
  }

  async #relayRead(message: Message, { begins, answers, metered, errorAt }: UpstreamReading): Promise<void> {
    if (begins === true || answers === true) this.#isAwaited = false;
    if (errorAt !== undefined && metered === undefined) this.#charges.failed(message.data, errorAt);
    // The upstream may start a response without a request.
    let refusal = begins === true ? await this.#charges.hold() : undefined;
    if (metered !== undefined) refusal = (await this.#charges.charge(metered, message.data, errorAt)) ?? refusal;
    if (refusal !== undefined) this.#failed(refusal);
    const data = errorAt === undefined ? message.data : withoutSecrets(message.data, errorAt, this.#key());
    await this.#toClient({ data, isBinary: message.isBinary });
    if (this.#isResponding) return;
    this.#onQuiet?.();
    this.#ending?.();
  }

  // ------------------------------------------------------------------------------------------------------------- the end

  #upstreamClosed(code: number): void {
    if (this.#isOver) {
      this.#onQuiet?.();
      return;
    }
    const isNormal = code === 1000 || code === 1001;
    if (!isNormal)
      this.#say(new GatewayError('upstream_failed', 'The model has ended the session.', { code: 'session_ended' }));
    this.#connection?.close(isNormal ? code : closeCode.failed, 'the model has ended the session');
    this.#end();
  }

  /** The session cannot go on. */
  #failed(error: unknown): void {
    if (this.#isOver) return;
    const shown = toGatewayError(error);
    if (shown.kind === 'internal') this.#logError(error, 'a session failed inside the gateway');
    this.#say(shown);
    const isRefused = shown.status < 500;
    this.#connection?.close(isRefused ? closeCode.policy : closeCode.failed, reasonOf(shown));
    this.#end();
  }

  #say(error: GatewayError): Promise<void> | undefined {
    const event = this.#opening.dialect.error(error, this.#tools.host.find(errorShape)?.members(error, ''));
    return event === undefined ? undefined : this.#connection?.send(event);
  }

  /** At most one error a second, since audio messages come many times a second. */
  #sayOnce(error: GatewayError): Promise<void> | undefined {
    const now = this.#tools.host.clock.monotonic();
    if (now - this.#refusedAt < 1_000) return undefined;
    this.#refusedAt = now;
    return this.#say(error);
  }

  /** Settles what runs and closes the upstream; runs once. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#fromClient.clear();
    this.#settle().catch((error: unknown) => {
      this.#logError(error, 'a session was not settled');
    });
  }

  #logError(error: unknown, message: string): void {
    this.#tools.host.log.error({ ...upgradeFields(this.#opening.head, this.#opening.caller), error }, message);
  }

  async #settle(): Promise<void> {
    const upstream = this.#upstream;
    this.#gate?.close();
    if (this.#isResponding && upstream?.isOpen === true) {
      this.#cancel();
      // The usage of a response that was cut short is still reported.
      await longestFor(drainMs, (done) => {
        this.#onQuiet = done;
      });
    }
    await this.#charges.stop(upstream?.isOpen !== true);
    upstream?.close();
  }
}
