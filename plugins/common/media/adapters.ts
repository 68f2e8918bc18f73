/**
 * Media adapters: the extension point of vendors' protocols for images and videos, and what an adapter consists of. The engine of
 * task-store executes orders; an adapter encodes them and parses the answers.
 */

import { defineExtensionPoint } from '../../../core/contract/contract.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { Target, UpstreamTraits } from '../domain/upstreams.ts';
import type { Usage } from '../domain/usage.ts';
import type { FormMember } from '../kit/forms/multipart.ts';

export type MediaKind = 'image' | 'video';

/** An image, video or sound that the client gives the model. */
export interface Reference {
  readonly role: 'image' | 'mask' | 'first_frame' | 'last_frame' | 'video' | 'audio';
  /** The client's field, such as `image_urls[1]`. */
  readonly field: string;
  readonly source: { readonly url: string } | { readonly base64: string; readonly mediaType: string };
}

/** An order, independent of any protocol. Absent members are the vendor's to choose. */
export interface Order {
  readonly kind: MediaKind;
  /** As the client named it. */
  readonly model: string;
  readonly prompt: string;
  /** Images; 1 for videos. */
  readonly count: number;
  /** In pixels. */
  readonly size?: { readonly width: number; readonly height: number };
  /** `16:9` …; absent for `auto` and `adaptive`. */
  readonly ratio?: string;
  readonly resolution?: '1k' | '2k' | '4k' | '480p' | '720p' | '1080p';
  readonly quality?: string;
  /** Length of a video. */
  readonly seconds?: number;
  readonly generateAudio?: boolean;
  readonly watermark?: boolean;
  readonly references: readonly Reference[];
  /** Stream the image, with this many previews; absent: no stream. */
  readonly previews?: number;
  /** The first vendor's values where they differ from the order; `adaptive`: it has the shape of the image. */
  readonly clamped?: { readonly seconds?: number; readonly ratio?: string };
  /** The client waits for the result: an error of a busy vendor is returned at once, and the client may retry. */
  readonly waited?: true;
  /** Regions in which it may be made; absent: anywhere. */
  readonly regions?: readonly string[];
  /** Further members of the request under the client's names, for vendors with the same members in their protocol. */
  readonly extra: JsonObject;
  /** The client's name for a member, where it differs: a refusal uses it. */
  readonly fields?: { readonly [Member in keyof Order]?: string };
}

/** A request to a vendor; the engine adds address and credentials. */
export interface VendorRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below the base URL, with its query. */
  readonly path: string;
  readonly body?: JsonObject;
  /** A form with files, instead of `body`. */
  readonly form?: readonly FormMember[];
  /** The client's names of soft parameters that this vendor does not support. */
  readonly dropped?: readonly string[];
  /** The made values where they differ from the order. */
  readonly clamped?: Order['clamped'];
}

/** An answer of the vendor, read whole. */
export interface VendorAnswer {
  readonly status: number;
  /** Lower-case names; may include the time to wait before a retry. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Arrival time, in wall-clock milliseconds. */
  readonly atMs?: number;
  /** undefined: the body is no JSON. */
  readonly json: unknown;
  /** The raw body of an error status. */
  readonly bytes?: Uint8Array;
}

/** One generated file. `url` is the vendor's address and expires. */
export type MadeFile =
  | { readonly url: string; readonly mediaType?: string }
  | { readonly base64: string; readonly mediaType?: string };

/** The usage that is charged. */
export interface Made {
  readonly usage: Usage;
  /** Part of the usage is the gateway's estimate. */
  readonly estimated: boolean;
  /** The vendor's description of the result, such as `1024x1024`, `high`, `720p`: prices may depend on it. */
  readonly media: readonly string[];
  /** The reported background of an image, such as `transparent`. */
  readonly background?: string;
}

/** A vendor's progress with an order. */
export type Step =
  | { readonly state: 'queued' | 'running'; readonly vendorId: string; readonly progress?: number }
  | { readonly state: 'done'; readonly files: readonly MadeFile[]; readonly made: Made }
  /** The vendor refused or failed, and charges nothing. `message` may be shown to the client: scrubbed, without names. */
  | { readonly state: 'failed'; readonly code: string; readonly message: string };

/** The most that an order can cost, for the hold. */
export interface Bounds {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly images: number;
  readonly seconds: number;
  /** Media of the result, if the vendor chooses none of it; absent: the dearest is assumed. */
  readonly media?: readonly string[];
  /** The client's field by which a language model writes the result; the price must name `output`. Absent: none does. */
  readonly writes?: string;
}

/** The meaning of one event of a vendor's stream; undefined: not relevant here. */
type StreamSignal = 'preview' | 'error' | Extract<Step, { state: 'done' | 'failed' }> | undefined;

/** How a vendor streams one image; its events are relayed to the client unchanged. */
export interface Streaming {
  create(order: Order, target: Target): VendorRequest;
  read(json: JsonObject, event: string | undefined, order: Order): StreamSignal;
}

/** One vendor protocol; pure. A parser throws an UpstreamRefusal or UpstreamError for anything that it cannot read. */
export interface MediaAdapter {
  /** Its name under a provider's `speaks`. */
  readonly name: string;
  /** Path, below the base URL, of the endpoint that is called most: `/images/generations`. */
  readonly path: string;
  readonly kind: MediaKind;
  /** Header and value that carry the key, if the provider names none; absent: `Authorization: Bearer`. */
  readonly auth?: UpstreamTraits['auth'];
  /** The gateway fetches references by URL, as the vendor accepts bytes only. */
  readonly needsBytes: boolean;
  /**
   * Most images per call. The engine divides a larger order into calls, each with its own `count`; bounds cover the
   * whole order.
   */
  readonly mostPerCall: number;
  /** Throws GatewayErrors (400, code `unsupported_by_model`, the client's field) for what this vendor does not support. */
  create(order: Order, target: Target): VendorRequest;
  /** A vendor that returns the result at once is `done` here. */
  readCreated(answer: VendorAnswer, order: Order): Step;
  /** Only for vendors that have tasks of their own. */
  readonly tasks?: {
    poll(vendorId: string): VendorRequest;
    readPolled(answer: VendorAnswer, order: Order, vendorId: string): Step;
    /** Cancels a task that has not started; absent: not supported. */
    cancel?(vendorId: string): VendorRequest;
  };
  /** Only for vendors that stream previews. */
  readonly streams?: Streaming;
  bounds(order: Order): Bounds;
}

/** The protocols in which images and videos can be ordered of vendors. */
export const mediaAdapters = defineExtensionPoint<MediaAdapter>('media adapters');
