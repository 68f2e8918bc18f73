/** All vendor protocols for images and videos, by their names under a provider's `speaks`. */
import type { Adapter } from '../contract.ts';
import { arkImages } from './ark-images.ts';
import { arkVideos } from './ark-videos.ts';
import { geminiImages } from './gemini-images.ts';
import { openaiImages } from './openai-images.ts';
import { xaiImages } from './xai-images.ts';
import { xaiVideos } from './xai-videos.ts';

export const adapters: ReadonlyMap<string, Adapter> = new Map(
  [openaiImages, geminiImages, xaiImages, arkImages, xaiVideos, arkVideos].map((adapter) => [
    adapter.protocol,
    adapter,
  ]),
);
