/** Path → which protocol and operation, or the bill. Pure. Version prefixes may be there or not. */
import { table } from '../../core/contract/table.ts';
import { type ServiceRoute, serviceRouteOf } from './endpoints/routes.ts';
import type { PictureProtocol } from './media/pictures.ts';
import type { VideoProtocol } from './media/video-jobs.ts';
import type { Operation } from './protocol.ts';
import type { ProtocolName } from './script/model-request.ts';
import { type StoredResponseRoute, storedResponseRouteOf } from './stored-response-routes.ts';

export type Route =
  | StoredResponseRoute
  | ServiceRoute
  | { readonly kind: 'bill' | 'reset' | 'file' | 'tools' }
  | { readonly kind: 'images'; readonly protocol: PictureProtocol; readonly edits: boolean }
  /** `id` of a task to get or cancel. */
  | { readonly kind: 'videos'; readonly protocol: VideoProtocol; readonly id: string | undefined }
  | {
      readonly kind: 'call';
      readonly protocol: ProtocolName;
      readonly operation: Operation;
      readonly pathModel?: string;
      readonly pathStream?: boolean;
    };

const fixed: Record<string, Route> = table({
  'POST /chat/completions': { kind: 'call', protocol: 'chat', operation: 'answer' },
  'POST /responses': { kind: 'call', protocol: 'responses', operation: 'answer' },
  'POST /responses/compact': { kind: 'call', protocol: 'responses', operation: 'compact' },
  'POST /responses/input_tokens': { kind: 'call', protocol: 'responses', operation: 'count' },
  'POST /messages': { kind: 'call', protocol: 'messages', operation: 'answer' },
  'POST /messages/count_tokens': { kind: 'call', protocol: 'messages', operation: 'count' },
  'POST /images/generations': { kind: 'images', protocol: 'openai-images', edits: false },
  'POST /images/edits': { kind: 'images', protocol: 'openai-images', edits: true },
  'POST /mcp': { kind: 'tools' },
  'GET /bill': { kind: 'bill' },
  'POST /bill/reset': { kind: 'reset' },
});

const routes = new Map<string, Route>(
  Object.entries(fixed).flatMap(([name, route]) => {
    const [method, path] = name.split(' ') as [string, string];
    return [[name, route] as const, [`${method} /v1${path}`, route] as const];
  }),
);

/** Two vendors have other bodies at the same paths: theirs have a prefix of the sandbox's own. */
const arkImages: Route = { kind: 'images', protocol: 'ark-images', edits: false };
const named = new Map<string, Route>([
  ['POST /imagine/v1/images/generations', { kind: 'images', protocol: 'xai-images', edits: false }],
  ['POST /imagine/v1/images/edits', { kind: 'images', protocol: 'xai-images', edits: true }],
  ['POST /imagine/v1/videos/generations', { kind: 'videos', protocol: 'xai-videos', id: undefined }],
  ['POST /api/v3/images/generations', arkImages],
  ['POST /api/v3/contents/generations/tasks', { kind: 'videos', protocol: 'ark-videos', id: undefined }],
]);
const videoPath =
  /^(?:GET|DELETE) (?:\/imagine\/v1\/videos|(\/api\/v3)\/contents\/generations\/tasks)\/([\w-]{1,100})$/;

function mediaRouteOf(method: string, path: string): Route | undefined {
  if (path.startsWith('/files/')) return method === 'GET' ? { kind: 'file' } : undefined;
  const name = `${method} ${path}`;
  const match = videoPath.exec(name);
  if (match === null) return named.get(name);
  const protocol = match[1] === undefined ? 'xai-videos' : 'ark-videos';
  if (protocol === 'xai-videos' && method === 'DELETE') return undefined;
  return { kind: 'videos', protocol, id: match[2] };
}

const modelPath =
  /^(?:\/v1(?:beta|alpha)?)?\/models\/(.+)(?::|%3A)(generateContent|streamGenerateContent|countTokens)$/i;

/** The route of a request, or undefined when there is nothing at that path. `path` without the query. */
export function routeOf(method: string, path: string): Route | undefined {
  const route =
    routes.get(`${method} ${path}`) ??
    mediaRouteOf(method, path) ??
    storedResponseRouteOf(method, path) ??
    serviceRouteOf(method, path);
  if (route !== undefined || method !== 'POST') return route;
  const match = modelPath.exec(path);
  if (match === null) return undefined;
  const verb = match[2]!.toLowerCase();
  return {
    kind: 'call',
    protocol: 'gemini',
    operation: verb === 'counttokens' ? 'count' : 'answer',
    pathModel: decoded(match[1]!),
    pathStream: verb === 'streamgeneratecontent',
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
