/** Where a process of the gateway begins: gets ready to load the command line, which is most of the code, then loads it. */
import { keepCompiled, rememberFormats } from './loading.ts';

keepCompiled();
rememberFormats();
await import('./command-line.ts');
