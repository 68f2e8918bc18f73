/** The button that saves rows as CSV which the page itself puts together. */
import { Button } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';

interface SaveCsvProps {
  /** Rows fetched so far; undefined: nothing is running. */
  readonly fetched?: number | undefined;
  readonly onSave: () => void;
}

export function SaveCsv({ fetched, onSave }: SaveCsvProps) {
  const { t } = useTranslation();
  return (
    <Button
      size="compact-xs"
      variant="subtle"
      color="gray"
      leftSection={<IconDownload size={14} />}
      title={t('shell.csvLabel')}
      disabled={fetched !== undefined}
      onClick={onSave}
    >
      {fetched === undefined ? t('shell.csv') : `${fetched} …`}
    </Button>
  );
}
