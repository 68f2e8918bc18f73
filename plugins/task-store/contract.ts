/** What the rooms of this plugin tell one another: shapes read orders, adapters word them for vendors, the queue carries them out. */
import type { JsonObject } from '../../core/json.ts';
import type { Usage } from '../../core/usage.ts';
import type { Target } from '../../core/vocabulary.ts';

export type MediaKind = 'image' | 'video';

/** Something that the client shows the model. */
export interface Reference {
  readonly role: 'image' | 'first_frame' | 'last_frame' | 'video' | 'audio';
  /** Where the client wrote it, as `image_urls[1]`. */
  readonly field: string;
  readonly source: { readonly url: string } | { readonly base64: string; readonly mediaType: string };
}

/** What a client wants made, in nobody's words. Absent members are the vendor's to choose. */
export interface Order {
  readonly kind: MediaKind;
  /** As asked for. */
  readonly model: string;
  readonly prompt: string;
  /** Images; 1 of videos. */
  readonly count: number;
  /** In pixels. */
  readonly size?: { readonly width: number; readonly height: number };
  /** `16:9` … ; `auto` and `adaptive` are absence. */
  readonly ratio?: string;
  readonly resolution?: '1k' | '2k' | '4k' | '480p' | '720p' | '1080p';
  readonly quality?: string;
  /** Of a video. */
  readonly seconds?: number;
  readonly generateAudio?: boolean;
  readonly watermark?: boolean;
  readonly references: readonly Reference[];
  /** Further members that the client wrote, by their own names, for vendors whose protocol has the same ones. */
  readonly extra: JsonObject;
}

/** A request to a vendor; address and credentials are the queue's to add. */
export interface VendorRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below the base URL, with its query. */
  readonly path: string;
  readonly body?: JsonObject;
}

export interface VendorAnswer {
  readonly status: number;
  /** undefined: no JSON. */
  readonly json: unknown;
}

/** One file that was made. `url` is the vendor's and expires. */
export type MadeFile =
  | { readonly url: string; readonly mediaType?: string }
  | { readonly base64: string; readonly mediaType?: string };

/** What is charged. */
export interface Made {
  readonly usage: Usage;
  /** Some of it is the gateway's estimate. */
  readonly estimated: boolean;
  /** What it says of what it made, as `1024x1024`, `high`, `720p`: prices may depend on it. */
  readonly media: readonly string[];
}

/** How far a vendor is. */
export type Step =
  | { readonly state: 'queued' | 'running'; readonly vendorId: string; readonly progress?: number }
  | { readonly state: 'done'; readonly files: readonly MadeFile[]; readonly made: Made }
  /** The vendor will not, or could not, and charges nothing. `message` may be shown to the client: scrubbed, without names. */
  | { readonly state: 'failed'; readonly code: string; readonly message: string };

/** The most that an order can cost, for the hold. */
export interface Bounds {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly images: number;
  readonly seconds: number;
  readonly media: readonly string[];
}

/** One vendor protocol: pure. Anything that a reader cannot understand throws an UpstreamRefusal or UpstreamError. */
export interface Adapter {
  /** Its name under a provider's `speaks`: `openai-images`, `gemini-images`, `xai-images`, `ark-images`, `xai-videos`, `ark-videos`. */
  readonly protocol: string;
  readonly kind: MediaKind;
  /** References by URL are fetched by the gateway, as the vendor takes bytes alone. */
  readonly needsBytes: boolean;
  /** Throws GatewayErrors (400, code `unsupported_by_model`, the client's field) for what this vendor cannot do. */
  create(order: Order, target: Target): VendorRequest;
  /** A vendor that answers at once is `done` here. */
  readCreated(answer: VendorAnswer, order: Order): Step;
  /** Only vendors that have tasks of their own. */
  readonly tasks?: {
    poll(vendorId: string): VendorRequest;
    readPolled(answer: VendorAnswer, order: Order, vendorId: string): Step;
    /** Takes back what has not begun; absent: cannot be cancelled. */
    cancel?(vendorId: string): VendorRequest;
  };
  bounds(order: Order): Bounds;
}
