/** The ES modules of pages that plugins add, as files under `/console/modules/`. */
import { readFile } from 'node:fs/promises';
import type { Answer } from '../../core/contract/message.ts';
import { compressed } from '../common/kit/pages/compress.ts';
import type { AddedPage } from './page-problems.ts';

const folder = 'modules/';

/** Where a page's module is, below the gateway's origin. */
export const moduleAddress = ({ place, page: { name } }: AddedPage) =>
  `/console/${folder}${place === 'admin' ? '' : `${place}/`}${name}.js`;

/** `path` begins behind `/console/`. undefined: it names no module. */
export async function moduleAnswer(
  pages: readonly AddedPage[],
  path: string,
  accepted: string,
): Promise<Answer | undefined> {
  const added = pages.find((one) => moduleAddress(one) === `/console/${path}`);
  if (added === undefined) return undefined;
  const body = await readFile(added.page.module);
  // Read again each time: a page that was built again is shown without a restart.
  const headers = { 'content-type': 'text/javascript; charset=utf-8', 'cache-control': 'no-cache' };
  return compressed({ status: 200, headers, body }, accepted);
}
