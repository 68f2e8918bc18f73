/** Builds the web app during `npm ci`; where the build tools were left out (--omit=dev), keeps the build that is there. */
import { fileURLToPath } from 'node:url';

const configFile = fileURLToPath(new URL('./vite.config.ts', import.meta.url));

if (installed('vite') && installed('react')) {
  const { build } = await import('vite');
  // Its own loader, since the project's TypeScript names files with their .ts ending.
  await build({ configFile, configLoader: 'native', logLevel: 'error' });
} else {
  console.error('console: the build tools are not installed, so the web app is not rebuilt');
}

function installed(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
