/** The last look before a file is saved: the difference, what it changes, and why. */
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../api/again.ts';
import { send } from '../../../api/client.ts';
import { Waiting } from '../../../parts/states.tsx';
import { Act } from '../parts/act.tsx';
import type { ConfigCheck } from '../sale-types.ts';
import { Changes } from './check-result.tsx';
import { doneText } from './done-text.ts';

const YamlDiff = lazy(() => import('./yaml-diff.tsx'));

interface SaveDialogProps {
  readonly name: string;
  /** The text that was edited; a save is refused where the file has another one by now. */
  readonly previous: string;
  readonly text: string;
  readonly check: ConfigCheck;
  readonly onClose: () => void;
}

export function SaveDialog({ name, previous, text, check, onClose }: SaveDialogProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  return (
    <Act
      opened
      wide
      onClose={onClose}
      title={t('operator.config.reviewTitle', { name: name.split('/').at(-1) })}
      action={t('operator.config.saveNow')}
      act={async (reason) => {
        const done = await send<ConfigCheck>('POST', '/admin/config/save', { file: name, text, previous, reason });
        // Plans, prices and more may have changed; and until the saved text is loaded, the edit counts as unsaved.
        await askAgain(client, []);
        return doneText(done, t('operator.config.saved'), t);
      }}
    >
      <Suspense fallback={<Waiting height={240} />}>
        <YamlDiff before={previous} after={text} label={t('operator.config.diff')} />
      </Suspense>
      <Changes check={check} />
    </Act>
  );
}
