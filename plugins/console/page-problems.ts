/** Pages that plugins add, with the place where they are shown, and whether they fit: names, paths, modules. */
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Fault } from '../../core/contract/contract.ts';
import type { ExtensionHost } from '../../core/contract/extensions.ts';
import { type AdminPage, adminPages, type ClientPage, clientPages } from '../common/domain/admin/admin-pages.ts';
import { access } from './api/routing/access.ts';

const mostModuleBytes = 4 * 1024 * 1024;

/** A page, and the first segment of its address below `/console` and `/console/api`. */
export type AddedPage =
  | { readonly place: 'admin'; readonly page: AdminPage }
  | { readonly place: 'pages'; readonly page: ClientPage };

export function addedPages({ extensions }: Pick<ExtensionHost, 'extensions'>): readonly AddedPage[] {
  const forOperators = extensions(adminPages).map((page) => ({ place: 'admin', page }) as const);
  return [...forOperators, ...extensions(clientPages).map((page) => ({ place: 'pages', page }) as const)];
}

/** Segments below `/admin` that belong to the console's own pages and routes. */
const taken = new Set([
  'overview',
  ...Object.keys(access).flatMap((row) => /\/admin\/([a-z-]+)/.exec(row)?.slice(1) ?? []),
]);

/** The path of a page's route in the API. */
export const routePath = ({ place, page: { name } }: AddedPage, { path }: { readonly path: string }) =>
  `/${place}/${name}${path}`;

/** One sentence for each thing that prevents a page from being shown. */
export function problemsOf(pages: readonly AddedPage[]): readonly Fault[] {
  return pages.flatMap((added) => sentencesOf(added).map((message) => ({ path: [], message })));
}

function sentencesOf(added: AddedPage): string[] {
  const { place, page } = added;
  const { name, routes = [] } = page;
  const what = `the ${place === 'admin' ? 'admin' : 'client'} page "${name}"`;
  if (!/^[a-z][a-z0-9-]{0,40}$/.test(name)) return [`${what} needs a name of small letters, digits and dashes`];
  if (place === 'admin' && taken.has(name)) return [`${what} has a name that the console uses itself: give it another`];
  const found: string[] = [];
  const seen = new Set<string>();
  for (const one of routes) {
    const line = `${one.method} ${routePath(added, one)}`;
    if (!/^(?:\/(?:[a-z0-9-]+|:[a-z]\w*))*$/i.test(one.path))
      found.push(`${what} has a route with the path "${one.path}": write it such as "/rows/:id"`);
    const shape = line.replaceAll(/:\w+/g, ':');
    if (seen.has(shape)) found.push(`${what} brings the route ${line} twice`);
    seen.add(shape);
  }
  const size = sizeOf(page.module);
  if (size === undefined) found.push(`the module of ${what} is not there: ${page.module.pathname}`);
  else if (size > mostModuleBytes) found.push(`the module of ${what} is larger than ${mostModuleBytes} bytes`);
  return found;
}

function sizeOf(module: URL): number | undefined {
  try {
    return statSync(fileURLToPath(module)).size;
  } catch {
    return undefined;
  }
}
