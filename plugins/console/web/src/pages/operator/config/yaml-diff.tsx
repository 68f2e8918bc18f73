/** What would change in a gateway file, line by line; what stays is folded. Loaded when it is asked for. */
import { yaml } from '@codemirror/lang-yaml';
import { unifiedMergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { look } from './look.ts';

export default function YamlDiff({ before, after, label }: { before: string; after: string; label: string }) {
  const parent = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const extensions = [
      lineNumbers(),
      yaml(),
      look,
      EditorView.lineWrapping,
      EditorState.readOnly.of(true),
      EditorView.contentAttributes.of({ 'aria-label': label, 'aria-readonly': 'true', tabindex: '0' }),
      unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } }),
    ];
    const view = new EditorView({ doc: after, extensions, parent: parent.current! });
    return () => view.destroy();
  }, [before, after, label]);
  return <div ref={parent} data-testid="config-diff" />;
}
