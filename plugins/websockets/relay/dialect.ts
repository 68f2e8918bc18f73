/** What the relay must know of a protocol's messages: which are charged, their usage, the form of errors. Types. */
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { ShapeMembers } from '../../common/domain/error-shape.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import type { Usage } from '../../common/domain/usage.ts';
import type { WireHeaders } from '../../common/kit/upstream-request.ts';
import type { IsPriced } from '../../common/wire/named.ts';
import type { AnswerReader } from './answers/reading.ts';
import type { Message } from './upstream.ts';

/** One kind of session. */
export interface RelayProtocol {
  /** As providers list it under `speaks`. */
  readonly name: string;
  /** The end of its addresses, which must not be part of a base URL. */
  readonly base: string;
  readonly wire: WireHeaders;
  /** The gateway's own path for the steps of a session. */
  readonly endpoint: string;
  /** Below the provider's base URL. */
  path(model: string): string;
}

export interface Dialect {
  readonly protocol: RelayProtocol;
  /** Why the first message is refused: it names another model, or a tool of the vendor without a price. */
  checkFirst?(message: Message, model: string, isPriced: IsPriced): GatewayError | undefined;
  /** Connected: the upstream's name of the model. `isPriced`: of tools that the vendor runs. */
  opened?(model: string, upstream: Target['upstream'], isPriced: IsPriced): void;
  /** A response is being made. */
  readonly isResponding: boolean;
  /** The model that a session's first message names, where the address does not; undefined: this message may not be the first. */
  modelIn?(message: Message): string | undefined;
  /** The first message with the upstream's name of the model. */
  withModel?(message: Message, model: string): Message;
  client(message: Message): ClientReading;
  /** undefined: the message is passed on unread. */
  upstream(message: Message): UpstreamReading | undefined;
  /** Its answers, as checks read them. */
  readonly answers: AnswerReader;
  /** Whether the upstream's first message refuses the session. */
  refusal(greeting: Buffer): Record<string, unknown> | undefined;
  /**
   * An error event for the client; undefined: the protocol has none, and the close reason has the error. `shape`: the members of
   * the gateway's own error bodies, where it has its own.
   */
  error(error: GatewayError, shape?: ShapeMembers): string | undefined;
  /** Ends the running response, so that its usage is reported; undefined: the protocol has no such message. */
  readonly cancel: string | undefined;
}

/** A message of the client. */
export interface ClientReading {
  /** The message is not passed on. */
  readonly refusal?: GatewayError;
  /** The message that is sent in its place. */
  readonly replaced?: Buffer;
  /** It may start a response: money must be held. */
  readonly needsHold: boolean;
  /** The upstream answers it with a response, or with an error. */
  readonly asks?: boolean;
  /** Tokens that it adds to the prompt, estimated. */
  readonly tokens: number;
}

/** A message of the upstream. */
export interface UpstreamReading {
  /** A response begins. */
  readonly begins?: boolean;
  /** A response that was asked for has ended before it began, or may have been refused. */
  readonly answers?: boolean;
  /** The usage of something that has ended. */
  readonly metered?: Metered;
  /** It reports an error, in the member at this path. */
  readonly errorAt?: readonly string[] | undefined;
}

export interface Metered {
  /** undefined: it has run, and no usage was reported. */
  readonly usage: Usage | undefined;
  /** Another model than the session's, by the upstream's name: that of a transcription. */
  readonly model?: string | undefined;
  readonly upstreamId?: string | undefined;
  readonly finish?: string | undefined;
}
