/** Path → which protocol and operation, or the bill. Pure. Version prefixes may be there or not. */
import type { ProtocolName } from './ask.ts';
import type { Operation } from './protocol.ts';

export type Route =
  | { readonly kind: 'bill' | 'reset' | 'images' }
  | {
      readonly kind: 'call';
      readonly protocol: ProtocolName;
      readonly operation: Operation;
      readonly pathModel?: string;
      readonly pathStream?: boolean;
    };

const fixed: Record<string, Route> = {
  'POST /chat/completions': { kind: 'call', protocol: 'chat', operation: 'answer' },
  'POST /responses': { kind: 'call', protocol: 'responses', operation: 'answer' },
  'POST /responses/compact': { kind: 'call', protocol: 'responses', operation: 'compact' },
  'POST /responses/input_tokens': { kind: 'call', protocol: 'responses', operation: 'count' },
  'POST /messages': { kind: 'call', protocol: 'messages', operation: 'answer' },
  'POST /messages/count_tokens': { kind: 'call', protocol: 'messages', operation: 'count' },
  'POST /images/generations': { kind: 'images' },
  'GET /bill': { kind: 'bill' },
  'POST /bill/reset': { kind: 'reset' },
};

const routes = new Map<string, Route>(
  Object.entries(fixed).flatMap(([name, route]) => {
    const [method, path] = name.split(' ') as [string, string];
    return [[name, route] as const, [`${method} /v1${path}`, route] as const];
  }),
);

const modelPath =
  /^(?:\/v1(?:beta|alpha)?)?\/models\/(.+)(?::|%3A)(generateContent|streamGenerateContent|countTokens)$/i;

/** The route of a request, or undefined when there is nothing at that path. `path` without the query. */
export function routeOf(method: string, path: string): Route | undefined {
  const route = routes.get(`${method} ${path}`);
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
