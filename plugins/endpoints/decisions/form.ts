/** Typed questions about an input and their answers, between the two forms in which clients and vendors write them. Types. */
import type { JsonObject } from '../../../core/json/json.ts';
import type { RequestBody } from '../../../core/json/request-body.ts';
import type { Usage } from '../../common/domain/usage.ts';
import type { Limits } from '../description.ts';

/** One way to write requests and answers. */
export interface Form {
  readonly protocol: string;
  /** Below the base URL. */
  readonly path: string;
  /** What every request is checked for. Throws invalid_request that names the field. */
  measure(body: RequestBody, limits: Limits): Measured;
  /** All of the request, for a vendor of the other form. Throws for a malformed request. */
  read(json: JsonObject): Decisions;
  /** Throws `unsupported_by_model` for what this form cannot express. */
  encode(decisions: Decisions, model: string): object;
  /** Throws an UpstreamRefusal for an answer that does not belong to these questions. */
  readAnswers(json: JsonObject, questions: readonly Question[]): readonly Answer[];
  encodeAnswers(answers: readonly Answer[], questions: readonly Question[], model: string, usage: Usage): object;
}

interface Measured {
  readonly questions: number;
  /** An upper estimate of the prompt, which is read once. */
  readonly tokens: number;
}

interface Decisions {
  readonly input: readonly Item[];
  readonly questions: readonly Question[];
  /** Members that the other form does not have. */
  readonly others: readonly string[];
}

/** A message of a conversation, or a call of a tool or its result. */
export interface Item {
  /** Its labels: its role, or its type, name and id. */
  readonly label: JsonObject;
  /** The member that contains the content. */
  readonly member: 'content' | 'output';
  /** undefined: the label is all of it. */
  readonly content: readonly Content[] | undefined;
}

export type Content =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'data'; readonly data: unknown }
  | { readonly kind: 'image'; readonly field: string };

export interface Question {
  /** Where it stands in the request. */
  readonly field: string;
  /** Unique in the request. */
  readonly id: string;
  /** As the client named it. */
  readonly name: string | null;
  readonly instructions: readonly Content[];
  readonly asks:
    | { readonly kind: 'yes'; readonly criteria: Criteria | undefined }
    | { readonly kind: 'choice'; readonly options: readonly Option[] }
    | { readonly kind: 'score'; readonly levels: readonly Level[] };
}

/** What counts as yes and as no; undefined: it is not said. */
export interface Criteria {
  readonly true: string | undefined;
  readonly false: string | undefined;
}

export interface Option {
  readonly value: string | boolean;
  readonly description: string | undefined;
}

export interface Level {
  readonly label: string;
  readonly description: string | undefined;
  /** As the client wrote it. */
  readonly written: unknown;
}

export type Answer =
  | { readonly kind: 'refusal' }
  | { readonly kind: 'yes'; readonly probability: number }
  /** `at`: the chosen option. Probabilities are those of the options, in their order. */
  | ({ readonly kind: 'choice'; readonly at: number } & Weighed)
  /** From 0 to the number of levels less one. */
  | ({ readonly kind: 'score'; readonly score: number } & Weighed);

interface Weighed {
  readonly confidence: number;
  readonly probabilities: readonly number[];
}
