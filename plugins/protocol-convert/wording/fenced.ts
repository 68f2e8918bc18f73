/** What a vendor ran by itself, as text that markdown shows: other protocols have no place for it. Pure. */

/** `language` may be empty, as of what a program printed. */
export function fenced(language: string, text: string): string {
  return `\n\`\`\`${language}\n${text === '' || text.endsWith('\n') ? text : `${text}\n`}\`\`\`\n`;
}
