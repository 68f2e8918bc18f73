/** The interface between the table of endpoints and what handles all of them. Types. */
import { defineContextKey, type Exchange } from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import type { Answer, AnswerBody, RepeatableBody } from '../../core/contract/message.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { Call, UsageReport } from '../common/domain/calls.ts';
import type { ModelKind } from '../common/domain/models.ts';
import type { Target } from '../common/domain/upstreams.ts';
import type { Usage } from '../common/domain/usage.ts';
import type { WireHeaders } from '../common/kit/upstream-request.ts';
import type { Spool } from './audio/spool.ts';

/** One address that clients call. */
export interface EndpointDescription {
  readonly path: string;
  /** Templates of its paths, for the description of the interface, where `path` is no plain pattern. */
  readonly paths?: readonly string[];
  /** Its name in configuration; several addresses may share one. */
  readonly operation: Operation;
  /** Kind of the models that it takes. */
  readonly kind: ModelKind;
  /** One sentence, for the description of the interface. */
  readonly summary: string;
  readonly request: 'json' | 'multipart';
  /** Where the model's name stands. */
  readonly model: 'body' | 'path';
  /** Media types of its answers. */
  readonly answers: readonly string[];
  /** Reads the request; throws invalid_request that names the field. A promise for a form, which is read as it comes. */
  open(exchange: Exchange, limits: Limits, spool: Spool): Opened | Promise<Opened>;
  renderError(error: GatewayError, exchange: Pick<Exchange, 'id' | 'request'>): Answer;
}

export const operations = ['embeddings', 'rerank', 'decisions', 'moderations', 'speech', 'transcriptions'] as const;
type Operation = (typeof operations)[number];

/** Bounds of one request. */
export interface Limits {
  /** Inputs for embeddings and moderations. */
  readonly inputs: number;
  readonly documents: number;
  /** Questions of one request for decisions. */
  readonly questions: number;
  /** Characters of a text to speak. */
  readonly characters: number;
  /** Bytes of an audio file. */
  readonly fileBytes: number;
  /** Models of requests that may leave theirs out. */
  readonly defaultModels: Readonly<Partial<Record<Operation, string>>>;
}

/** A request as it was read. */
export interface Opened {
  readonly call: Call;
  /** Encodes it for a target. Throws `unsupported_by_model` for what the target's protocol cannot express. */
  prepare(target: Target): Prepared;
}

export interface Prepared {
  readonly wire: WireHeaders;
  /** Below the target's base URL. */
  readonly path: string;
  readonly body: Uint8Array | readonly Uint8Array[] | RepeatableBody;
  /** Absent: the client's. */
  readonly contentType?: string;
  readonly accept?: string;
  /** Members that the target does not get. */
  readonly dropped: readonly string[];
  /** true: the upstream speaks another protocol than the client. */
  readonly converted: boolean;
  readonly answer: AnswerReader;
}

/** Reads the usage of an answer, and converts it where the protocols differ. */
export type AnswerReader =
  | { readonly form: 'whole'; read(body: Uint8Array, context: AnswerContext): Reading | Promise<Reading> }
  | { readonly form: 'stream'; open(contentType: string, context: AnswerContext): StreamMeter };

export interface AnswerContext {
  readonly call: Call;
  readonly exchange: Exchange;
  /** Members of the gateway's own error bodies; absent: it has no shape of its own. */
  readonly shapeOf?: ((error: GatewayError, requestId: string) => object) | undefined;
  /** Records the vendor's words of an error event: behind the beginning of an answer it is no refusal of the attempt. */
  readonly failed: (event: JsonObject) => void;
  /** Without the key of this attempt, and whatever else looks like a secret. */
  readonly masked: (bytes: Uint8Array) => Uint8Array;
}

/** The content of a whole body. */
interface Reading {
  /** undefined: the vendor reported none. */
  readonly usage: Usage | undefined;
  /** Better estimates than those of the request, for unreported classes. */
  readonly seen?: Usage;
  readonly upstreamId?: string | undefined;
  /** Absent: byte for byte. */
  readonly body?: AnswerBody;
  readonly contentType?: string;
}

/** Follows a body that is passed on as it comes, but for errors; its report is right whenever it is read. */
export interface StreamMeter {
  readonly report: UsageReport;
  /** Returns what is sent now. */
  feed(chunk: Uint8Array): Uint8Array | undefined;
  /**
   * The upstream's body has ended, or broke off with `broken`. Returns the text to send instead of the rest; undefined after a
   * break: the answer breaks off too.
   */
  end(broken?: unknown): Uint8Array | undefined;
}

/** The request of this exchange; set by the endpoint's `open`. */
export const openedRequest = defineContextKey<Opened>('opened endpoint request');
