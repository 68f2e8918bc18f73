/** All fuzz targets. */
import type { Target } from '../target.ts';
import { body } from './body.ts';
import { head } from './head.ts';
import { journal } from './journal.ts';
import { splice } from './splice.ts';
import { jsonArray, sse } from './sse.ts';
import { streams } from './stream.ts';

export const targets: readonly Target[] = [head, body, splice, sse, jsonArray, ...streams, journal];
