/** Which version of the gateway runs, as its package says. */
import packageFile from '../package.json' with { type: 'json' };

export const version: string = packageFile.version;
