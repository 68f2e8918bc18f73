/** A call as programs write it: curl, and the official SDK of its protocol in Python and JavaScript. Pure. */
import { type ApiCall, type CallName, keyHeader } from './call.ts';
import { argument, FileNames, javascript, python, pythonOfGoogle, shellData, shellQuoted, snake } from './literals.ts';
import { type Sdk, sdkOf } from './sdk.ts';

/** Address of the gateway without a slash at its end, and a key. */
export interface Access {
  readonly base: string;
  readonly key: string;
}
export const codeLanguages = ['curl', 'python', 'javascript'] as const;
export type CodeLanguage = (typeof codeLanguages)[number];
export const languageNames: Readonly<Record<CodeLanguage, string>> = {
  curl: 'curl',
  python: 'Python',
  javascript: 'JavaScript',
};

export function codeOf(language: CodeLanguage, call: ApiCall, access: Access): string {
  if (language === 'curl') return curlOf(call, access);
  return language === 'python' ? pythonOf(call, access) : javascriptOf(call, access);
}

function curlOf(call: ApiCall, { base, key }: Access): string {
  const { path, headers = {}, body, file } = call;
  const lines = [
    `curl ${body['stream'] === true || path.includes('alt=sse') ? '-N ' : ''}${shellQuoted(`${base}${path}`)}`,
    ...Object.entries({ ...keyHeader(call, key), ...headers }).map(([name, value]) => `-H "${name}: ${value}"`),
    ...(call.name === 'speech' ? [`-o speech.${body['response_format'] ?? 'mp3'}`] : []),
    ...(file === undefined
      ? ['-H "content-type: application/json"', shellData(body)]
      : [
          ...Object.entries(body).map(([name, value]) => `-F ${shellQuoted(`${name}=${value}`)}`),
          `-F ${shellQuoted(`file=@${file.name}`)}`,
        ]),
  ];
  const order = lines.join(' \\\n  ');
  const result = resultPath[call.name];
  return result === undefined ? order : `${order}\n\ncurl '${base}${result}' \\\n  -H "authorization: Bearer ${key}"`;
}

/** Where the result of an order is had, by the id in its answer. */
const resultPath: { readonly [Name in CallName]?: string } = {
  image: '/v1/tasks/TASK_ID',
  video: '/v1/contents/generations/tasks/TASK_ID',
};

type Texts = Readonly<Record<'python' | 'javascript', string>>;

const clients: Readonly<Record<Sdk['client'], (access: Access) => Texts>> = {
  openai: ({ base, key }) => ({
    python: `client = OpenAI(base_url="${base}/v1", api_key="${key}")`,
    javascript: `const client = new OpenAI({ baseURL: "${base}/v1", apiKey: "${key}" });`,
  }),
  anthropic: ({ base, key }) => ({
    python: `client = Anthropic(base_url="${base}", api_key="${key}")`,
    javascript: `const client = new Anthropic({ baseURL: "${base}", apiKey: "${key}" });`,
  }),
  // Not every gateway reads the key where this client puts it.
  google: ({ base, key }) => ({
    python: `client = genai.Client(\n    api_key="${key}",\n    http_options={"base_url": "${base}", "headers": {"x-api-key": "${key}"}},\n)`,
    javascript: `const client = new GoogleGenAI({\n  apiKey: "${key}",\n  httpOptions: { baseUrl: "${base}", headers: { "x-api-key": "${key}" } },\n});`,
  }),
};
const imports: Readonly<Record<Sdk['client'], Texts>> = {
  openai: { python: 'from openai import OpenAI', javascript: 'import OpenAI from "openai";' },
  anthropic: { python: 'from anthropic import Anthropic', javascript: 'import Anthropic from "@anthropic-ai/sdk";' },
  google: { python: 'from google import genai', javascript: 'import { GoogleGenAI } from "@google/genai";' },
};

function pythonOf(call: ApiCall, access: Access): string {
  const { client, method, members, extra, path, result, after } = sdkOf(call);
  const files = new FileNames();
  const dialect = client === 'google' ? pythonOfGoogle : python;
  const written = (values: object) =>
    Object.entries(values).map(([name, value]) => `${name}=${argument(value, dialect, files)}`);
  const words =
    path === undefined
      ? written({ ...members, ...(extra === undefined ? {} : { extra_body: extra }) })
      : [JSON.stringify(path), 'cast_to=object', ...written({ body: members })];
  const listed = words.map((word) => `    ${word},\n`).join('');
  const text = `${clients[client](access).python}\n\n${result} = client.${snake(method)}(\n${listed})\n${after.python}`;
  const coders = ['b64decode', 'b64encode'].filter((name) => text.includes(`${name}(`));
  const standard = [
    ...(coders.length > 0 ? [`from base64 import ${coders.join(', ')}`] : []),
    ...(text.includes('Path(') ? ['from pathlib import Path'] : []),
    ...(text.includes('sleep(') ? ['from time import sleep'] : []),
  ];
  return [...standard, ...(standard.length > 0 ? [''] : []), imports[client].python, '', text].join('\n');
}

function javascriptOf(call: ApiCall, access: Access): string {
  const { client, method, members, extra, path, result, changes = false, after } = sdkOf(call);
  const files = new FileNames();
  const listed = Object.entries(path === undefined ? { ...members, ...extra } : { body: members })
    .map(([name, value]) => `  ${javascript.member(name)}: ${argument(value, javascript, files)},\n`)
    .join('');
  const words = `${path === undefined ? '' : `${JSON.stringify(path)}, `}{\n${listed}}`;
  const made = `${changes ? 'let' : 'const'} ${result} = await client.${method}(${words});`;
  const text = `${clients[client](access).javascript}\n\n${made}\n${after.javascript}`;
  const used = ['createReadStream', 'readFileSync', 'writeFileSync'].filter((name) => text.includes(`${name}(`));
  const head = [
    ...(used.length === 0 ? [] : [`import { ${used.join(', ')} } from "node:fs";`]),
    ...(text.includes('sleep(') ? ['import { setTimeout as sleep } from "node:timers/promises";'] : []),
    imports[client].javascript,
  ];
  return `${head.join('\n')}\n\n${text}`;
}
