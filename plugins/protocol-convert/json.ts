/** Reading of JSON that somebody else wrote, at hand for every file of this plugin. Pure. */
export * from '../../core/json.ts';
