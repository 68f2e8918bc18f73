/** The editor of a gateway file: YAML with suggestions and marks from its schema. Loaded when the page is opened. */
import { autocompletion, type CompletionResult, closeBrackets, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, indentUnit } from '@codemirror/language';
import { type Diagnostic, linter, lintGutter, lintKeymap } from '@codemirror/lint';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { type Mark, marksOf, type Sayings } from './lint.ts';
import { look } from './look.ts';
import type { SchemaNode } from './schema.ts';
import { meaningAt, suggestionsAt } from './suggest.ts';

export interface YamlEditorProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly schema: SchemaNode;
  /** Faults that the gateway found. */
  readonly marks: readonly Mark[];
  readonly readOnly: boolean;
  readonly label: string;
  readonly say: Sayings;
  /** Where to put the cursor; a new object each time. */
  readonly place: { readonly offset: number } | undefined;
}

export default function YamlEditor(props: YamlEditorProps) {
  const parent = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const lint = useRef(new Compartment());
  const access = useRef(new Compartment());

  useEffect(() => {
    const { value, schema, label } = latest.current;
    const changed = EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onChange(update.state.doc.toString());
    });
    const extensions = [
      basics,
      schemaHelp(schema),
      changed,
      EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
      lint.current.of(marking(latest.current)),
      access.current.of(accessOf(latest.current.readOnly)),
    ];
    const editor = new EditorView({ doc: value, extensions, parent: parent.current! });
    view.current = editor;
    return () => editor.destroy();
  }, []);

  const { value, marks, readOnly, place } = props;
  useEffect(() => {
    const editor = view.current;
    if (editor === undefined || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);
  useEffect(() => {
    view.current?.dispatch({ effects: lint.current.reconfigure(marking({ ...latest.current, marks })) });
  }, [marks]);
  useEffect(() => {
    view.current?.dispatch({ effects: access.current.reconfigure(accessOf(readOnly)) });
  }, [readOnly]);

  useEffect(() => {
    if (place === undefined) return;
    view.current?.dispatch({ selection: { anchor: place.offset }, scrollIntoView: true });
    view.current?.focus();
  }, [place]);

  return <div ref={parent} data-testid="config-editor" />;
}

// Tab leaves the editor, as everywhere: who works by keyboard must get out of it.
const basics: Extension = [
  lineNumbers(),
  lintGutter(),
  highlightActiveLine(),
  highlightActiveLineGutter(),
  history(),
  drawSelection(),
  bracketMatching(),
  closeBrackets(),
  indentUnit.of('  '),
  EditorState.tabSize.of(2),
  EditorView.lineWrapping,
  yaml(),
  look,
  EditorView.theme({ '.cm-scroller': { minHeight: '18rem' } }),
  keymap.of([...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
];

function accessOf(readOnly: boolean): Extension {
  return [EditorState.readOnly.of(readOnly), EditorView.contentAttributes.of({ 'aria-readonly': String(readOnly) })];
}

function schemaHelp(schema: SchemaNode): Extension {
  const suggest = ({ state, pos, explicit }: { state: EditorState; pos: number; explicit: boolean }) => {
    const found = suggestionsAt(schema, state.doc.toString(), pos);
    if (found === undefined || (!explicit && found.from === pos)) return null;
    const options = found.options.map(({ label, apply, detail, info, kind }) => ({
      label,
      apply,
      detail,
      ...(info === '' ? {} : { info }),
      type: kind === 'member' ? 'property' : 'constant',
    }));
    return { from: found.from, options, validFor: /^[\w.-]*$/ } satisfies CompletionResult;
  };
  const hover = hoverTooltip((editor, pos) => {
    const word = editor.state.wordAt(pos);
    if (word === null) return null;
    const meaning = meaningAt(schema, editor.state.doc.toString(), word.from);
    if (meaning === undefined) return null;
    return { pos: word.from, end: word.to, create: () => ({ dom: paragraph(meaning.text) }) };
  });
  return [autocompletion({ override: [suggest], icons: false }), hover];
}

function paragraph(text: string): HTMLElement {
  const element = document.createElement('div');
  element.textContent = text;
  return element;
}

function marking({ schema, marks, say }: Pick<YamlEditorProps, 'schema' | 'marks' | 'say'>): Extension {
  const source = ({ state }: EditorView): Diagnostic[] => {
    const text = state.doc.toString();
    const own = marksOf(schema, text, say).map((mark) => ({ ...mark, severity: 'error' as const }));
    const given = marks
      .filter(({ from }) => from <= text.length && !own.some((mark) => mark.from === from))
      .map(({ from, to, message }) => ({ from, to: Math.min(to, text.length), message, severity: 'error' as const }));
    return [...own, ...given];
  };
  return linter(source, { delay: 300 });
}
