/** How the web app is built: one page under /console/, hashed files beside it, each written compressed as well. */
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { precompress } from './precompress.ts';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/',
  plugins: [react(), precompress()],
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
            { name: 'icons', test: /@tabler/ },
            // The first page shows no table.
            { name: 'frame', test: /@tanstack\/(react-router|router-core|react-store|store|react-query|query-core)/ },
            {
              name: 'parts',
              test: /web\/src\/(parts\/(?!virtual-rows|data-table|rows-table|columns|pager|ledger|toasts|set-up|code-block|secret-once|confirm|price|expired-result|fact-list|known-words|chart|activity|span|on-sight|model-square|uptime|command\.|command-places|markdown)|api)/,
            },
            { name: 'tables', test: /parts\/(data-table|rows-table|columns|pager|ledger)/ },
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
