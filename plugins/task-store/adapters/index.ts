/** The adapters that this plugin adds to its own extension point, as other plugins add theirs. */
import type { MediaAdapter } from '../../common/media/adapters.ts';
import { arkImages } from './ark-images.ts';
import { arkVideos } from './ark-videos.ts';
import { geminiImages } from './gemini-images.ts';
import { openaiImages } from './openai-images.ts';
import { xaiImages } from './xai-images.ts';
import { xaiVideos } from './xai-videos.ts';

export const ownAdapters: readonly MediaAdapter[] = [
  openaiImages,
  geminiImages,
  xaiImages,
  arkImages,
  xaiVideos,
  arkVideos,
];
