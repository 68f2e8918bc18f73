/** How YAML looks in the editor, in light and in dark. */
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { nonce } from '../../../nonce.ts';

const frame = EditorView.theme({
  '&': {
    fontSize: '13px',
    color: 'var(--mantine-color-text)',
    backgroundColor: 'var(--mantine-color-body)',
    border: '1px solid var(--mantine-color-default-border)',
    borderRadius: 'var(--mantine-radius-md)',
    overflow: 'hidden',
  },
  '&.cm-focused': { outline: '2px solid var(--mantine-primary-color-filled)', outlineOffset: '1px' },
  '.cm-scroller': {
    fontFamily: 'var(--mantine-font-family-monospace)',
    lineHeight: '1.6',
    maxHeight: '62vh',
  },
  '.cm-content': { caretColor: 'var(--mantine-color-text)', padding: '8px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--mantine-color-text)' },
  '.cm-gutters': {
    color: 'var(--mantine-color-dimmed)',
    backgroundColor: 'light-dark(var(--mantine-color-gray-0), var(--mantine-color-dark-7))',
    border: 'none',
  },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'light-dark(#4263eb0d, #7189ee14)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'light-dark(#b9c6f8, #2a43a6)',
  },
  '.cm-tooltip': {
    color: 'var(--mantine-color-text)',
    backgroundColor: 'var(--mantine-color-body)',
    border: '1px solid var(--mantine-color-default-border)',
    borderRadius: 'var(--mantine-radius-sm)',
    boxShadow: 'var(--mantine-shadow-md)',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    color: 'var(--mantine-color-white)',
    background: 'var(--mantine-primary-color-filled)',
  },
  '.cm-completionInfo': { maxWidth: '28rem', padding: '8px 10px' },
  '.cm-tooltip-hover > div': { maxWidth: '32rem', padding: '8px 10px' },
  '.cm-panels': { color: 'var(--mantine-color-text)', backgroundColor: 'var(--mantine-color-default-hover)' },
  '.cm-changedLine': { backgroundColor: 'light-dark(#ebfbee, #12301f) !important' },
  '.cm-deletedChunk': { backgroundColor: 'light-dark(#fff0f0, #3a1a1f) !important' },
  '.cm-changedText': { background: 'light-dark(#b2f2bb, #1f5c34) !important' },
  '.cm-deletedText': { background: 'light-dark(#ffc9c9, #6b2730) !important' },
  '.cm-collapsedLines': {
    color: 'var(--mantine-color-dimmed)',
    background: 'light-dark(var(--mantine-color-gray-1), var(--mantine-color-dark-6))',
  },
});

const words = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'light-dark(#2a43a6, #92a5f3)' },
  { tag: [tags.string, tags.content], color: 'light-dark(#2b6a3a, #8fd6a3)' },
  { tag: [tags.number, tags.bool, tags.atom], color: 'light-dark(#9c3d12, #f0a77e)' },
  { tag: [tags.comment, tags.lineComment], color: 'light-dark(#5d6470, #949cad)', fontStyle: 'italic' },
  { tag: [tags.keyword, tags.labelName, tags.typeName], color: 'light-dark(#862e9c, #da9bea)' },
]);

export const look: Extension = [EditorView.cspNonce.of(nonce), frame, syntaxHighlighting(words)];
