/** An endpoint's description in the public interface (`/openapi.json`), and texts for addresses without one. Types. */
import type { GatewayError } from './errors.ts';
import type { Answer, ClientRequest } from './message.ts';

/** One of the operations that `Endpoint.describes` names; an endpoint without any is not described. */
export interface PublicOperation {
  /** One sentence. */
  readonly summary: string;
  /** Set where the endpoint's pattern is not the whole path: `/v1beta/models/{model}:generateContent`. */
  readonly path?: string;
  /** Media types of the request's body, and the members that it must have; absent: it has no body. */
  readonly body?: { readonly types: readonly string[]; readonly required?: readonly string[] };
  /** Parameters of the query with a sentence each. */
  readonly query?: Readonly<Record<string, string>>;
  /** Media types of the answer; absent: JSON. */
  readonly answers?: readonly string[];
}

/** Requests that match no endpoint; the first plugin of the list that has it is asked. */
export interface Unrouted {
  /** A text about the address instead of the usual sentence; undefined: none. */
  explain(request: ClientRequest): string | undefined;
  /** Renders the error where no endpoint near the path does; undefined: as plain JSON. */
  renderError(
    error: GatewayError,
    context: { readonly id: string; readonly request: ClientRequest },
  ): Answer | undefined;
}
