/** A browser's part in tests: cookies by name, the Origin of its page, the header that the pages send. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

export interface Wanted {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

export class Browser {
  readonly origin: string;
  /** Where it takes its page to come from. */
  readonly page: string;
  readonly cookies = new Map<string, string>();
  /** As they were set, with their attributes. */
  readonly setCookies: string[] = [];

  constructor(origin: string, page = origin) {
    this.origin = origin;
    this.page = page;
  }

  /** `path` begins with a slash, below `/console/api` unless it names all of it. */
  async send(path: string, { method, body, headers = {} }: Wanted = {}): Promise<Reply> {
    const url = path.startsWith('/console') ? this.origin + path : `${this.origin}/console/api${path}`;
    const changes = body !== undefined || (method !== undefined && method !== 'GET');
    const response = await fetch(url, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      redirect: 'manual',
      headers: {
        ...(this.cookies.size === 0 ? {} : { cookie: this.cookieHeader() }),
        ...(changes ? { origin: this.page, 'x-console': '1', 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    for (const line of response.headers.getSetCookie()) this.#take(line);
    const text = await response.text();
    const isJson = /^application\/json(?:;|$)/.test(response.headers.get('content-type') ?? '');
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson && text !== '' ? JSON.parse(text) : undefined,
    };
  }

  cookieHeader(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  #take(line: string): void {
    this.setCookies.push(line);
    const [pair] = line.split(';');
    const equals = pair!.indexOf('=');
    const value = pair!.slice(equals + 1);
    if (value === '' || /max-age=0/i.test(line)) this.cookies.delete(pair!.slice(0, equals));
    else this.cookies.set(pair!.slice(0, equals), value);
  }
}
