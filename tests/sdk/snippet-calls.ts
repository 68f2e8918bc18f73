/** The console's snippets as files that can be run: each kind of call and each template of an SDK, in each language. */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { blocksOf, clientPrograms } from '../../core/tools/client-programs.ts';
import {
  type ApiCall,
  embeddingCall,
  imageCall,
  moderationCall,
  rerankCall,
  speechCall,
  transcriptionCall,
  videoCall,
} from '../../plugins/console/web/src/calls/call.ts';
import { type Access, type CodeLanguage, codeOf } from '../../plugins/console/web/src/calls/code.ts';
import { callOf } from '../../plugins/console/web/src/pages/client/playground/chat/protocols.ts';
import { model } from './demo.ts';

const picture = readFileSync(new URL('../../plugins/console/pictures/home.png', import.meta.url));
const dataUrl = `data:image/png;base64,${picture.toString('base64')}`;
const awkward = 'Say "it\'s" ${HOME} `date` \\n é ✓';

const conversation = {
  model,
  system: 'Be brief.',
  messages: [
    { role: 'user', content: awkward, images: [dataUrl] },
    { role: 'assistant', content: 'A page.' },
    { role: 'user', content: 'Tell me of lighthouses' },
  ],
  parameters: { temperature: 0.5, maxTokens: 300 },
  tools: [],
} as const;
const withTools = {
  ...conversation,
  messages: [{ role: 'user', content: 'What is the weather in Oslo?' }],
  tools: ['sandbox'],
} as const;

/** With what the output, or the file that was made, must have. */
export const calls: readonly { readonly call: ApiCall; readonly says?: RegExp; readonly makes?: string }[] = [
  ...(['chat', 'responses', 'messages', 'gemini'] as const).map((name) => ({
    call: callOf(name, conversation),
    says: /lighthouses/,
  })),
  ...(['chat', 'responses', 'messages', 'gemini'] as const).map((name) => ({
    call: callOf(name, withTools),
    says: /Oslo/,
  })),
  {
    call: imageCall({ model: 'gpt-image-2', prompt: awkward, n: 2, size: '1024x1024', quality: 'low' }),
    makes: 'made-2.png',
  },
  {
    call: imageCall({ model: 'doubao-seedream-5-0-260128', prompt: 'A ship', n: 1, size: '16:9', resolution: '2k' }),
    makes: 'made-1.png',
  },
  { call: imageCall({ model: 'gpt-image-2', prompt: 'As a ship', n: 1, images: [dataUrl] }), makes: 'made-1.png' },
  {
    call: videoCall({ model: 'grok-imagine-video', prompt: 'Waves', seconds: 3, size: '1280x720', image: dataUrl }),
    makes: 'made.mp4',
  },
  { call: speechCall({ model: 'tts-1', input: awkward, voice: 'alloy', format: 'wav' }), makes: 'speech.wav' },
  { call: transcriptionCall('whisper-1', { name: 'talk.wav' }, 'verbose_json'), says: /talk\.wav/ },
  { call: transcriptionCall('whisper-1', { name: 'talk.wav' }, 'srt'), says: /-->/ },
  { call: embeddingCall('text-embedding-3-small', ['A cat', awkward]), says: /^1 1536 /m },
  { call: rerankCall('jina-reranker-v2-base-multilingual', 'a cat', ['It rains.', 'A cat.']), says: /^1 0\.|^1 1/m },
  { call: moderationCall('omni-moderation-latest', 'A text about violence'), says: /[Tt]rue/ },
];

const endings: Readonly<Record<CodeLanguage, string>> = { curl: 'sh', python: 'py', javascript: 'mjs' };
export const nameOf = (index: number) => `${String(index).padStart(2, '0')}-${calls[index]!.call.name}`;

/** Writes a folder for each call, with the files that its snippet reads, and one for the templates. */
export async function writeSnippets(folder: string, language: CodeLanguage, access: Access): Promise<void> {
  for (const [index, { call }] of calls.entries()) {
    const place = join(folder, nameOf(index));
    await mkdir(place, { recursive: true });
    await writeFile(join(place, 'image.png'), picture);
    await writeFile(join(place, 'talk.wav'), silence(1));
    await writeFile(join(place, `snippet.${endings[language]}`), codeOf(language, call, access));
  }
  const name = language === 'javascript' ? 'js' : language;
  for (const [id, program] of clientPrograms) {
    const filling = { ...access, model: program.makes === 'images' ? 'gpt-image-2' : model, name: 'demo' };
    for (const { language: written, text } of blocksOf(program, filling)) {
      if (written !== name || id === 'langchain') continue;
      await mkdir(join(folder, id), { recursive: true });
      await writeFile(join(folder, id, `snippet.${endings[language]}`), `${text}\n`);
    }
  }
}

/** PCM of so many seconds, in a file. */
function silence(seconds: number): Buffer {
  const [rate, head] = [8_000, Buffer.alloc(44)];
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + rate * seconds * 2, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(rate * seconds * 2, 40);
  return Buffer.concat([head, Buffer.alloc(rate * seconds * 2)]);
}
