/** Interfaces of the vendor protocols of images and videos. Types alone. */
import type { Usage } from '../../common/domain/usage.ts';
import type { Fault } from '../fault.ts';
import type { JsonObject } from '../json.ts';
import type { Directives } from '../script/directives.ts';
import type { Size } from './canvas.ts';

/** Parameters of an image request. */
export interface ImageParams {
  readonly model: string;
  /** Without directives. */
  readonly prompt: string;
  readonly count: number;
  readonly size: Size;
  /** `low`, `medium`, `high`, if the protocol has them. */
  readonly quality: string;
  /** Number of reference images. */
  readonly references: number;
  /** Number of previews in a stream; absent: not streamed. */
  readonly previews?: number;
  /** The answer contains bytes; otherwise URLs. */
  readonly asBytes: boolean;
  readonly directives: Directives;
}

/** URL of one picture; undefined: it failed. */
export type Picture = { readonly base64: string } | { readonly url: string } | undefined;

interface EncodedAnswer {
  readonly status: number;
  readonly body: object;
}

export interface ErrorEncoder {
  /** A refusal before anything ran. */
  fault(fault: Fault, id: string): { readonly body: string; readonly headers: Record<string, string> };
}

/** The events of a stream as their bytes; `created` in seconds. */
export interface PictureStreaming {
  preview(params: ImageParams, picture: Picture, index: number, created: number): string;
  completed(params: ImageParams, picture: Picture, created: number): string;
  fault(fault: Fault): string;
  usage(params: ImageParams): Usage;
  /** Usage of a stream that ended before its picture. */
  usageOfPreviews(params: ImageParams, previews: number): Usage;
}

export interface PictureDialect extends ErrorEncoder {
  readonly streaming?: PictureStreaming;
  /** Requests with references may come as forms with files. */
  readonly takesForms?: true;
  /** Throws a Fault for what this vendor would refuse. `edits`: the path for requests with references. */
  decode(body: JsonObject, edits: boolean): ImageParams;
  /** Usage of this number of pictures. */
  usage(params: ImageParams, made: number): Usage;
  /** `created` in seconds. */
  encode(params: ImageParams, pictures: readonly Picture[], created: number): object;
  moderated(params: ImageParams): EncodedAnswer;
}

export interface VideoParams {
  readonly model: string;
  readonly prompt: string;
  readonly size: Size;
  readonly resolution: string;
  readonly ratio: string;
  readonly seconds: number;
  readonly directives: Directives;
}

export type VideoState = 'queued' | 'running' | 'succeeded' | 'failed' | 'moderated' | 'cancelled' | 'expired';

/** A video task. */
export interface VideoTask {
  readonly id: string;
  readonly params: VideoParams;
  readonly createdAtMs: number;
}

export interface VideoDialect extends ErrorEncoder {
  readonly idPrefix: string;
  decode(body: JsonObject): VideoParams;
  usage(params: VideoParams): Usage;
  created(id: string): object;
  /** `url` if it succeeded; `share` of the work that is done, 0 to 1. */
  encodeTask(
    task: VideoTask,
    state: VideoState,
    result: { readonly url: string; readonly share: number; readonly now: number },
  ): EncodedAnswer;
}
