/** What a vendor protocol of images or videos must be able to say. Types alone. */
import type { Usage } from '../../../core/usage.ts';
import type { Directives } from '../directives.ts';
import type { Fault } from '../fault.ts';
import type { JsonObject } from '../json.ts';
import type { Size } from './canvas.ts';

/** What a request asks to be painted. */
export interface PictureAsk {
  readonly model: string;
  /** Without directives. */
  readonly prompt: string;
  readonly count: number;
  readonly size: Size;
  /** `low`, `medium`, `high`, where the protocol has them. */
  readonly quality: string;
  /** Images that are shown to the model. */
  readonly references: number;
  /** It is streamed, behind so many previews; absent: it is not. */
  readonly previews?: number;
  /** The answer carries bytes; else addresses. */
  readonly asBytes: boolean;
  readonly directives: Directives;
}

/** Where one picture is; undefined: it failed. */
export type Picture = { readonly base64: string } | { readonly url: string } | undefined;

export interface Wording {
  readonly status: number;
  readonly body: object;
}

export interface Words {
  /** A refusal before anything ran. */
  fault(fault: Fault, id: string): { readonly body: string; readonly headers: Record<string, string> };
}

/** The events of a stream as their bytes; `created` in seconds. */
export interface PictureStreaming {
  preview(ask: PictureAsk, picture: Picture, index: number, created: number): string;
  completed(ask: PictureAsk, picture: Picture, created: number): string;
  fault(fault: Fault): string;
  usage(ask: PictureAsk): Usage;
  /** Of a stream that ended before its picture. */
  usageOfPreviews(ask: PictureAsk, previews: number): Usage;
}

export interface PictureDialect extends Words {
  readonly streaming?: PictureStreaming;
  /** Requests with references may come as forms with files. */
  readonly takesForms?: true;
  /** Throws a Fault for what this vendor would refuse. `edits`: the path for requests with references. */
  read(body: JsonObject, edits: boolean): PictureAsk;
  /** What is charged for so many pictures. */
  usage(ask: PictureAsk, made: number): Usage;
  /** `created` in seconds. */
  word(ask: PictureAsk, pictures: readonly Picture[], created: number): object;
  moderated(ask: PictureAsk): Wording;
}

export interface VideoAsk {
  readonly model: string;
  readonly prompt: string;
  readonly size: Size;
  readonly resolution: string;
  readonly ratio: string;
  readonly seconds: number;
  readonly directives: Directives;
}

export type VideoState = 'queued' | 'running' | 'succeeded' | 'failed' | 'moderated' | 'cancelled' | 'expired';

/** A video task as it is told. */
export interface VideoTask {
  readonly id: string;
  readonly ask: VideoAsk;
  readonly createdAtMs: number;
}

export interface VideoDialect extends Words {
  readonly idPrefix: string;
  read(body: JsonObject): VideoAsk;
  usage(ask: VideoAsk): Usage;
  created(id: string): object;
  /** `url` where it succeeded; `share` of the work that is done, 0 to 1. */
  told(
    task: VideoTask,
    state: VideoState,
    told: { readonly url: string; readonly share: number; readonly now: number },
  ): Wording;
}
