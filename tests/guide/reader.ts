/** A reader who copies: saves the files of a section, runs its commands one after another, and keeps what was printed. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../helpers/free-port.ts';
import { until } from '../helpers/until.ts';

/** A page of the guide, and one of its headings; empty: what is before the first one. */
export type Section = readonly [page: string, heading: string];

const guide = 'plugins/docs/guide';
const isServer = /npm start$|gateway -- serve /;

export class Reader {
  /** All that commands have printed for the current goal. */
  said = '';
  readonly home: string;
  readonly #clone: string;
  readonly #vendor: string;
  readonly #environment: Record<string, string> = {};
  #port = 0;
  #key = '';
  #file = '';
  #server: ChildProcess | undefined;

  constructor(clone: string, vendor: string) {
    this.#clone = clone;
    this.#vendor = vendor;
    this.home = join(clone, '../home');
    mkdirSync(this.home);
    const speaks = `{ responses: "${vendor}/v1", chat: "${vendor}/v1" }`;
    writeFileSync(join(clone, 'stand-in.yaml'), `providers: { openai: { speaks: ${speaks} } }\n`);
  }

  async follow([page, heading]: Section): Promise<void> {
    this.#port ||= await freePort();
    const text = readFileSync(join(this.#clone, guide, `${page}.md`), 'utf8');
    const section = heading === '' ? text.split('\n## ')[0] : text.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0];
    if (section === undefined) throw new Error(`${page}.md has no section "${heading}"`);
    const blocks = [...section.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)];
    if (blocks.length === 0) throw new Error(`"${heading}" of ${page}.md shows nothing to do`);
    for (const [, language, block] of blocks) {
      if (language === 'yaml') this.#save(block!);
      if (language === 'sh')
        for (const line of block!
          .replace(/ \\\n\s*/g, ' ')
          .split('\n')
          .filter((one) => one !== ''))
          await this.#run(line).catch((error: Error) => {
            throw new Error(`${page}.md, "${heading}": ${line}\n${error.message}`);
          });
    }
  }

  /** The status of a chat call with the last key. */
  async statusOf(body: object): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    await answer.arrayBuffer();
    return answer.status;
  }

  async end(): Promise<void> {
    const server = this.#server;
    if (server === undefined || server.exitCode !== null) return;
    const ended = once(server, 'exit');
    process.kill(-server.pid!, 'SIGINT');
    const timer = setTimeout(() => process.kill(-server.pid!, 'SIGKILL'), 10_000);
    await ended;
    clearTimeout(timer);
  }

  /** A whole file has its name in its first line, and calls the vendor's stand-in; a part goes to the end of the last one. */
  #save(block: string): void {
    const name = /^# ([a-z-]+\.yaml)\n/.exec(block)?.[1];
    const here = block.replaceAll('8080', String(this.#port));
    if (name === undefined) {
      // The only server of this machine that listens where a preset expects it.
      const local = here.replace(
        'preset: vllm,',
        `preset: vllm, speaks: { chat: "${this.#vendor}/v1" }, keys: sk-of-the-vendor,`,
      );
      appendFileSync(join(this.#clone, this.#file), local);
      return;
    }
    this.#file = name;
    writeFileSync(
      join(this.#clone, name),
      here.replace('include: config/main.yaml', 'include: [config/main.yaml, stand-in.yaml]'),
    );
  }

  async #run(line: string): Promise<void> {
    const filled = this.#filled(line);
    const exported = /^export (\w+)=(.*)$/.exec(filled);
    if (exported !== null) {
      this.#environment[exported[1]!] = exported[2]!;
      return;
    }
    if (isServer.test(filled)) return this.#serve(filled);
    const failing = filled.startsWith('curl ') ? `${filled} --silent --show-error --fail` : filled;
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', failing], this.#place());
    this.#note(`${stdout}${stderr}`);
  }

  /** What stands for a value of the reader's own. */
  #filled(line: string): string {
    return line
      .replaceAll('localhost:8080', `localhost:${this.#port}`)
      .replace('sk-gw-…', this.#key)
      .replace('sk-…', 'sk-of-the-vendor')
      .replace('npm ci && ', '');
  }

  #place() {
    const environment = {
      PATH: process.env['PATH'],
      HOME: this.home,
      PORT: String(this.#port),
      ALT_PORT: '0',
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      ...this.#environment,
    };
    return { cwd: this.#clone, env: environment };
  }

  /** Stops the one before, as the page says or the taken port would. */
  async #serve(line: string): Promise<void> {
    await this.end();
    const place = this.#place();
    const server = spawn('bash', ['-c', line], { ...place, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#server = server;
    for (const stream of [server.stdout, server.stderr])
      stream.setEncoding('utf8').on('data', (text) => this.#note(text));
    await until('the gateway serves', async () => {
      if (server.exitCode !== null) throw new Error(this.said);
      const ready = await fetch(`http://127.0.0.1:${this.#port}/readyz`).catch(() => undefined);
      return ready?.ok;
    });
    // The key of a first start is printed when it listens.
    if (line.includes('npm start')) await until('a key is printed', () => this.#key !== '');
  }

  #note(text: string): void {
    this.said += text;
    this.#key = /sk-gw-\w{49}/.exec(text)?.[0] ?? this.#key;
  }
}
