/** How the web app is built: one page under /console/, hashed files beside it, each written compressed as well. */
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { precompress } from './precompress.ts';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/',
  // As plain objects, the keys without quotes: the languages are smaller so than as text for JSON.parse.
  json: { stringify: false, namedExports: false },
  plugins: [react(), precompress(), listPackages()],
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true,
    manifest: true,
    reportCompressedSize: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // Else each icon and each small part that two pages share would be a file, and a request, of its own.
          groups: [
            { name: 'icons', test: /@tabler/, minShareCount: 2 },
            // The first page shows no table.
            { name: 'frame', test: /@tanstack\/(react-router|router-core|react-store|store|react-query|query-core)/ },
            {
              name: 'parts',
              test: /web\/src\/(parts\/(?!virtual-rows|data-table|rows-table|columns|pager|ledger|toasts|set-up|code-block|secret-once|confirm|price|expired-result|fact-list|known-words|chart|activity|span|on-sight|model-square|uptime|command\.|command-|limits|named-span|project|budgets|markdown|saved-views|insight-texts|finding-filters|connect-texts|change|answer-cache|cached-tokens|measured-columns|table-menus|tags|makers|tokens|use-work|person-items|member-texts|company-texts|steady|account-name|beside-field|copy-button|delivery-fault|entry-frame|sent-notices)|api\/(?!auth|again|models|rights))/,
            },
            { name: 'tables', test: /parts\/(data-table|rows-table|table-menus|columns|pager|ledger)/ },
          ],
        },
      },
    },
  },
  server: {
    // For work on the pages: GATEWAY names a gateway, or the stand-in of tests/plugins/console/serve-fake.ts.
    proxy: {
      '/console/api': process.env['GATEWAY'] ?? 'http://127.0.0.1:8080',
      '/v1': process.env['GATEWAY'] ?? 'http://127.0.0.1:8080',
      '/console/live': { target: process.env['GATEWAY'] ?? 'http://127.0.0.1:8080', ws: true },
    },
  },
});

/** Writes which folders of packages the pages are made of, for the bill of materials (docker/sbom.mjs). */
function listPackages(): Plugin {
  return {
    name: 'list-packages',
    apply: 'build',
    generateBundle(_options, bundle) {
      const folders = new Set<string>();
      // Files that style sheets name, such as fonts.
      const named = Object.values(bundle).flatMap((each) => (each.type === 'asset' ? each.originalFileNames : []));
      for (const id of [...this.getModuleIds(), ...named]) {
        const [, folder] =
          /(?:^|[\\/])(node_modules[\\/](?:.*[\\/]node_modules[\\/])?(?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(id) ?? [];
        if (folder !== undefined) folders.add(folder.replaceAll('\\', '/'));
      }
      const source = `${JSON.stringify([...folders].sort(), undefined, 2)}\n`;
      this.emitFile({ type: 'asset', fileName: '.vite/packages.json', source });
    },
  };
}
