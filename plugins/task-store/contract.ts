/** What the rooms of this plugin tell one another: shapes read orders, adapters word them for vendors, the queue carries them out. */
import type { JsonObject } from '../../core/json.ts';
import type { Usage } from '../../core/usage.ts';
import type { Target, UpstreamTraits } from '../../core/vocabulary.ts';
import type { FormMember } from './multipart.ts';

export type MediaKind = 'image' | 'video';

/** Something that the client shows the model. */
export interface Reference {
  readonly role: 'image' | 'mask' | 'first_frame' | 'last_frame' | 'video' | 'audio';
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
  /** The image comes as a stream, behind so many previews of it; absent: it does not. */
  readonly previews?: number;
  /** Its client waits for the result: it is told of busy vendors at once, and may come again. */
  readonly waited?: true;
  /** Further members that the client wrote, by their own names, for vendors whose protocol has the same ones. */
  readonly extra: JsonObject;
  /** What the client calls a member, where it is another name: a refusal names what the client wrote. */
  readonly fields?: { readonly [Member in keyof Order]?: string };
}

/** A request to a vendor; address and credentials are the queue's to add. */
export interface VendorRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below the base URL, with its query. */
  readonly path: string;
  readonly body?: JsonObject;
  /** In place of `body`: a form with files. */
  readonly form?: readonly FormMember[];
  /** Hints of the client that this vendor does not take, by the client's names. */
  readonly dropped?: readonly string[];
}

export interface VendorAnswer {
  readonly status: number;
  /** Lower-case names; they may say how long the vendor wants to be left alone. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Wall-clock milliseconds at which it came. */
  readonly atMs?: number;
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
  /** What will be made, where nothing of it is left to the vendor; absent: whatever is dearest. */
  readonly media?: readonly string[];
}

/** What one event of a vendor's stream says; undefined: nothing that matters here. */
export type StreamWord = 'preview' | 'error' | Extract<Step, { state: 'done' | 'failed' }> | undefined;

/** How a vendor streams one image; each of its events is the client's as it came. */
export interface Streaming {
  create(order: Order, target: Target): VendorRequest;
  read(json: JsonObject, event: string | undefined, order: Order): StreamWord;
}

/** One vendor protocol: pure. Anything that a reader cannot understand throws an UpstreamRefusal or UpstreamError. */
export interface Adapter {
  /** Its name under a provider's `speaks`: `openai-images`, `gemini-images`, `xai-images`, `ark-images`, `xai-videos`, `ark-videos`. */
  readonly protocol: string;
  readonly kind: MediaKind;
  /** Header and value that carry the key, where the provider names none; absent: `Authorization: Bearer`. */
  readonly auth?: UpstreamTraits['auth'];
  /** References by URL are fetched by the gateway, as the vendor takes bytes alone. */
  readonly needsBytes: boolean;
  /** What one call makes at most. The queue divides a larger order into calls, each with its own `count`; bounds are those of the whole. */
  readonly mostPerCall: number;
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
  /** Only vendors that show previews. */
  readonly streams?: Streaming;
  bounds(order: Order): Bounds;
}

/** `reconciling` and the like are `running` to clients. The last four are final. */
export type TaskState = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'expired';

/** What of a stored task its client may see. Times are wall-clock milliseconds. */
export interface Task {
  readonly id: string;
  readonly kind: MediaKind;
  /** As the client named it. */
  readonly model: string;
  readonly state: TaskState;
  /** 0 to 100. */
  readonly progress: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** When it came to its final state. */
  readonly completedAtMs: number | undefined;
  /** Of what failed, was cancelled or expired. */
  readonly error: { readonly code: string; readonly message: string } | undefined;
  /** Of what succeeded, at addresses that clients may open. */
  readonly results: readonly TaskResult[];
  readonly order: Order;
  /** Of what succeeded. */
  readonly made: Made | undefined;
}

export interface TaskResult {
  /** Signed, and expires. */
  readonly url: string;
  readonly mediaType: string;
  /** Only where the client wants the bytes in the answer. */
  readonly base64?: string;
}

/** A request that was read: the order, and how the client wants to be answered. */
export interface Submission {
  readonly order: Order;
  /** The result is the answer; else the task's id is. */
  readonly waits: boolean;
  /** How results stand in an answer that was waited for. */
  readonly form: 'url' | 'base64';
  /** Where the client wants to be told of the final state. */
  readonly callbackUrl: string | undefined;
}

/** One client protocol: pure. */
export interface Shape {
  /** Throws invalid_request that names the client's field. Header names in lower case. */
  read(body: Uint8Array, headers: Readonly<Record<string, string | undefined>>): Submission;
  /** The answer to a submission. */
  submitted(task: Task): JsonObject;
  /** The answer to a query. */
  told(task: Task): JsonObject;
}
